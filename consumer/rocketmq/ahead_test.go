package rocketmq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/pipeline"
)

// numbered is a member with a queue of messages whose bodies are their offsets.
func numbered(w *world, n int) (*reader, consumer.Lease) {
	w.Helper()

	for i := range n {
		w.publish(strconv.Itoa(i))
	}

	r := w.join(consumer.Subscription{})
	l := r.owned(first())

	return r, l
}

// pulls checks that a pull of at most some messages gives as many, and returns where the next begins.
func (r *reader) pulls(l consumer.Lease, from pipeline.Offset, most, want int) pipeline.Offset {
	r.Helper()

	b, err := r.Pull(r.Context(), l, from, consumer.Limit{Messages: most, Bytes: 1 << 20})
	if err != nil || len(b.Messages) != want || b.Next != from+pipeline.Offset(want) {
		r.Fatalf("a pull at %d: %d messages, next %d, %v; want %d", from, len(b.Messages), b.Next, err, want)
	}

	for i, m := range b.Messages {
		if at := from + pipeline.Offset(i); m.Origin.Offset != at || string(m.Body) != strconv.Itoa(int(at)) {
			r.Fatalf("message %d of a pull at %d is %q of offset %d", i, from, m.Body, m.Origin.Offset)
		}
	}

	return b.Next
}

func TestTheNextAnswersAreAskedForAhead(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		r, l := numbered(w, 300)
		next := r.pulls(l, 0, 32, 32)

		synctest.Wait()
		w.fake.Fault(rocketmqfake.Faults{Broken: 1})

		for range 3 { // what has come already is handed on in as many parts as there is room for
			for range 3 {
				next = r.pulls(l, next, 10, 10)
			}

			next = r.pulls(l, next, 10, 2)
		}

		if b, err := r.Pull(w.Context(), l, next, some()); err == nil {
			w.Errorf("without a broker came %d messages more, from %d", len(b.Messages), next)
		}

		w.fake.Fault(rocketmqfake.Faults{})
		<-time.After(time.Minute) // it is tried again
		r.pulls(l, next, 32, 32)
		synctest.Wait()
		r.pulls(l, 5, 32, 32) // elsewhere, as a seek does
		r.pulls(l, 37, 4, 4)
		r.pulls(l, 290, 32, 10)
		w.publish("300")
		r.pulls(l, 300, 32, 1)
	})
}

// Where an answer begins is guessed from how many messages the last one brought. It is a wrong guess where the sizes of messages
// differ, or where many are left out by a filter.
func TestWrongGuessesSkipAndRepeatNothing(t *testing.T) {
	t.Parallel()

	const n = 1000

	for _, largest := range []int{0, 20 << 10, 600 << 10} {
		for _, filter := range []rocketmq.Filter{{}, {Tags: "wanted"}} {
			t.Run(fmt.Sprintf("%d bytes, %+v", largest, filter), func(t *testing.T) {
				t.Parallel()

				seed := rand.Uint64()
				t.Logf("seed %d", seed)

				inBubble(t, rocketmqfake.Options{}, rocketmq.Options{Filters: map[string]rocketmq.Filter{topic: filter}}, func(w *world) {
					rnd := rand.New(rand.NewPCG(seed, 0))
					wanted := map[pipeline.Offset]int{}

					for at := range pipeline.Offset(n) {
						m := &pipeline.Message{Body: make([]byte, 1), Tag: "wanted"}

						switch draw := rnd.IntN(20); {
						case draw == 0 && largest > 0:
							m.Body = make([]byte, 1+rnd.IntN(largest))
						case draw < 7 && at > n/2: // all the same at first
							m.Tag = "unwanted"
						}

						if err := w.Publish(w.Context(), topic, []*pipeline.Message{m}); err != nil {
							w.Fatal(err)
						}

						if m.Tag == "wanted" || filter == (rocketmq.Filter{}) {
							wanted[at] = len(m.Body)
						}
					}

					r := w.join(consumer.Subscription{})
					l := r.owned(first())

					for next := pipeline.Offset(0); next < n; {
						b, err := r.Pull(w.Context(), l, next, consumer.Limit{Messages: 1 + rnd.IntN(300), Bytes: 1 + rnd.Int64N(1<<20)})
						if err != nil || b.Next <= next {
							w.Fatalf("a pull at %d: next %d, %v", next, b.Next, err)
						}

						for _, m := range b.Messages {
							if size, found := wanted[m.Origin.Offset]; !found || size != len(m.Body) || m.Origin.Offset < next {
								w.Fatalf("a pull at %d brought %d: %t, %d and not %d bytes", next, m.Origin.Offset, found, len(m.Body), size)
							}

							delete(wanted, m.Origin.Offset)
						}

						next = b.Next
					}

					if len(wanted) > 0 {
						w.Errorf("%d of %d are missing", len(wanted), n)
					}
				})
			})
		}
	}
}

// A message of its own size is read whatever the room is, one at a time, and the others wait in the answer.
func TestAnAnswerIsReadInPartsByBytesToo(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		r, l := numbered(w, 5)

		for at := range pipeline.Offset(5) {
			b, err := r.Pull(w.Context(), l, at, consumer.Limit{Messages: 32, Bytes: 1})
			if err != nil || len(b.Messages) != 1 || b.Next != at+1 || b.End != 5 {
				w.Fatalf("at %d: %+v, %v", at, b, err)
			}

			w.fake.Fault(rocketmqfake.Faults{Broken: 1}) // the first answer had all
		}
	})
}

func TestResetIsMetAhead(t *testing.T) {
	t.Parallel()

	for _, target := range []pipeline.Offset{2, 128} { // the second is where an answer is asked for ahead
		t.Run(strconv.Itoa(int(target)), func(t *testing.T) {
			t.Parallel()

			inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
				r, l := numbered(w, 400)
				next := r.pulls(l, 0, 32, 32)

				if err := r.Commit(w.Context(), l, consumer.Checkpoint{Next: next}); err != nil {
					w.Fatal(err)
				}

				synctest.Wait()
				w.reset(strconv.Itoa(int(target)))

				// It was there before, and what is asked for in its place may meet the reset at once.
				b, err := r.Pull(w.Context(), l, next, some())
				if !errors.Is(err, consumer.ErrNotOwner) && (err != nil || len(b.Messages) != 32) {
					w.Fatalf("a pull at %d: %d messages, %v", next, len(b.Messages), err)
				}

				// Nobody pulls any more, and still the queue is given back.
				before := l
				r.next()

				if l = r.owned(first()); l == before || !l.Reset {
					w.Fatalf("the lease is %+v, and was %+v", l, before)
				}

				if _, err := r.Pull(w.Context(), before, 64, some()); !errors.Is(err, consumer.ErrNotOwner) {
					w.Errorf("a pull of before: %v", err)
				}

				if stored := r.storedOffset(); stored != strconv.Itoa(int(target)) {
					w.Errorf("stored is %s", stored)
				}

				r.pulls(l, target, 32, 32)
			})
		})
	}
}

// A reset is heard although nobody waits any more for the answer that tells of it.
func TestResetIsMetByWhatIsDropped(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		r, l := numbered(w, 400)
		next := r.pulls(l, 0, 32, 32)

		synctest.Wait()
		w.fake.Fault(rocketmqfake.Faults{Late: time.Second})
		w.reset("2")
		r.pulls(l, next, 32, 32)
		synctest.Wait() // another answer is on its way, and late

		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		_, _ = r.Pull(ctx, l, 300, some()) // elsewhere, as a seek does

		r.next()

		if l = r.owned(first()); !l.Reset {
			w.Fatalf("the lease is %+v", l)
		}

		r.pulls(l, 2, 32, 32)
	})
}

// What is asked for ahead ends with the membership.
func TestLeavingEndsWhatIsAskedForAhead(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		r, l := numbered(w, 100)
		r.pulls(l, 0, 32, 32)

		if err := r.Leave(w.Context()); err != nil {
			w.Fatal(err)
		}

		if _, err := r.Pull(w.Context(), l, 32, some()); !errors.Is(err, consumer.ErrLeft) {
			w.Errorf("a pull after leaving: %v", err)
		}
	})
}

// A record in the middle of an answer cannot be read while the next answer lies ready: what is before it comes first, it is
// met at its offset, and what is behind it comes when it is passed over.
func TestDamagedRecordIsMetWhereAnAnswerLiesAhead(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		const damaged = 20

		for i := range pipeline.Offset(100) {
			if i != damaged {
				w.publish(strconv.Itoa(int(i)))

				continue
			}

			_, err := w.client.Call(w.Context(), w.fake.Brokers[0].Addr, &remoting.Command{
				Code: remoting.SendMessageV2, Body: []byte("said to be compressed"), Ext: map[string]string{
					"a": "publishers", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "1", "g": "1", "h": "0", "j": "0", "n": "b0",
				},
			})
			if err != nil {
				w.Fatal(err)
			}
		}

		r := w.join(consumer.Subscription{})
		l := r.owned(first())
		next := r.pulls(l, 0, 32, damaged)

		for range 2 { // it stays where it is
			synctest.Wait()

			_, err := r.Pull(w.Context(), l, next, some())
			if told, ok := errors.AsType[*consumer.DamagedError](err); !ok || told.Offset != damaged || told.Queue != first() {
				w.Fatalf("a pull at %d: %v", next, err)
			}
		}

		for next++; next < 100; {
			b, err := r.Pull(w.Context(), l, next, some())
			if err != nil || len(b.Messages) == 0 || b.Messages[0].Origin.Offset != next {
				w.Fatalf("a pull at %d: %+v, %v", next, b, err)
			}

			next = b.Next
		}
	})
}
