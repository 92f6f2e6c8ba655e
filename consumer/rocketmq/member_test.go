package rocketmq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/pipeline"
)

func TestFailingListOfMembersKeepsTheAssignment(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		r := w.join(consumer.Subscription{})
		l := r.owned(first())
		r.owned(retries())
		w.fake.Fault(rocketmqfake.Faults{MemberList: 1})
		r.keeps(10 * time.Minute)
		w.publish("a")

		if b := r.take(l, 0); len(b.Messages) != 1 {
			w.Errorf("got %v", bodies(b))
		}
	})
}

// TestMembersMayBeDealtTheirQueues has two members and a topic of four queues at one broker, which blocks would share as 0, 1
// and 2, 3.
func TestMembersMayBeDealtTheirQueues(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{Circle: true}, func(w *world) {
		w.fake.CreateTopic(topic, 4)

		readers := []*reader{w.join(consumer.Subscription{Instance: "a"}), w.join(consumer.Subscription{Instance: "b"})}

		var owned [2][]int

		for i, r := range readers {
			for len(owned[i]) != 2 { // the first may have had all of them
				r.next()

				owned[i] = nil

				for _, l := range r.assigned.Leases {
					if l.Queue.Topic == topic {
						owned[i] = append(owned[i], l.Queue.ID)
					}
				}
			}
		}

		slices.SortFunc(owned[:], slices.Compare)

		if !slices.Equal(owned[0], []int{0, 2}) || !slices.Equal(owned[1], []int{1, 3}) {
			w.Errorf("the members own %v", owned)
		}
	})
}

func TestMemberOutlivesItsBrokerAndNameServer(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		r := w.join(consumer.Subscription{})
		l := r.owned(first())
		r.owned(retries())
		w.publish("a")
		w.fake.StopNameServer()
		w.fake.Brokers[0].Stop()
		r.keeps(5 * time.Minute)

		if _, err := r.Pull(w.Context(), l, 0, some()); err == nil {
			w.Error("a broker that is down answered a pull")
		}

		if err := w.fake.Brokers[0].Start(); err != nil {
			w.Fatal(err)
		}

		r.keeps(time.Minute) // the name server is still away

		if b := r.take(l, 0); !slices.Equal(bodies(b), []string{"a"}) {
			w.Errorf("after the restart came %v", bodies(b))
		}

		if list := w.ask(remoting.GetConsumerList, nil); list != nil {
			w.Logf("members %v", list)
		}
	})
}

func TestLastHeartbeatBringsNobodyBack(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		w.fake.CreateTopic(topic, 2)

		r := w.join(consumer.Subscription{Instance: "member-1"})
		second := pipeline.Queue{Topic: topic, Broker: "b0", ID: 1}
		r.owned(second)
		w.fake.Fault(rocketmqfake.Faults{LateUpkeep: 100 * time.Millisecond})

		guest := w.join(consumer.Subscription{Instance: "member-2"})
		guest.owned(second) // of which it tells the brokers, who hear that late

		for len(r.assigned.Leases) > 2 {
			r.next()
		}

		synctest.Wait()

		if err := guest.Leave(w.Context()); err != nil {
			w.Fatal(err)
		}

		r.owned(second)
		r.keeps(time.Minute)
	})
}

func TestLastLockKeepsNobodyOut(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{Orderly: true}, func(w *world) {
		r := w.join(consumer.Subscription{})
		r.owned(first())
		r.owned(retries())
		w.fake.Fault(rocketmqfake.Faults{LateUpkeep: time.Second})
		r.keeps(20*time.Second + 500*time.Millisecond) // locks are being renewed

		if err := r.Leave(w.Context()); err != nil {
			w.Fatal(err)
		}

		w.fake.Fault(rocketmqfake.Faults{})
		<-time.After(2 * time.Second)

		began := time.Now()
		w.join(consumer.Subscription{}).owned(first())

		if time.Since(began) > 5*time.Second {
			w.Errorf("the next member got the queue after %v", time.Since(began))
		}
	})
}

func TestLeaveEndsWithItsContext(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		r := w.join(consumer.Subscription{})
		w.fake.Fault(rocketmqfake.Faults{LateUpkeep: time.Hour})
		r.owned(first())

		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()

		began := time.Now()
		if err := r.Leave(ctx); err != nil || time.Since(began) > time.Second {
			w.Errorf("left after %v, %v", time.Since(began), err)
		}
	})
}

// Brokers tell apart only the hashes of tags, and Aa and BB have the same.
func TestTagsAreComparedAgain(t *testing.T) {
	t.Parallel()

	o := rocketmq.Options{Filters: map[string]rocketmq.Filter{topic: {Tags: "Aa || C"}}}
	inBubble(t, rocketmqfake.Options{}, o, func(w *world) {
		for _, tag := range []string{"Aa", "BB", "", "C", "BB"} {
			if err := w.Publish(w.Context(), topic, []*pipeline.Message{{Tag: tag, Body: []byte("x" + tag)}}); err != nil {
				w.Fatal(err)
			}
		}

		r := w.join(consumer.Subscription{})

		b := r.take(r.owned(first()), 0)
		if got := bodies(b); !slices.Equal(got, []string{"xAa", "xC"}) || b.Next != 5 {
			w.Errorf("got %v and next %d", got, b.Next)
		}
	})
}

func TestSQLFiltersAtTheBroker(t *testing.T) {
	t.Parallel()

	o := rocketmq.Options{Filters: map[string]rocketmq.Filter{topic: {SQL: "n > 1"}}}
	inBubble(t, rocketmqfake.Options{}, o, func(w *world) {
		for _, n := range []string{"1", "2", "3"} {
			m := &pipeline.Message{Body: []byte(n), Props: map[string]string{"n": n}}
			if err := w.Publish(w.Context(), topic, []*pipeline.Message{m}); err != nil {
				w.Fatal(err)
			}
		}

		r := w.join(consumer.Subscription{})
		if got := bodies(r.take(r.owned(first()), 0)); !slices.Equal(got, []string{"2", "3"}) {
			w.Errorf("got %v", got)
		}
	})
}

func TestExpiredMessagesAreOutOfRange(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		w.publish("a", "b", "c")
		w.fake.Brokers[0].Trim(topic, 0, 2)

		r := w.join(consumer.Subscription{})
		_, err := r.Pull(w.Context(), r.owned(first()), 1, some())

		outside, ok := errors.AsType[*consumer.OutOfRangeError](err)
		if !ok || outside.First != 2 || outside.End != 3 || outside.From != 1 {
			w.Errorf("got %v", err)
		}
	})
}

func TestJoinSaysWhatIsWrong(t *testing.T) {
	t.Parallel()

	sql := rocketmq.Options{Filters: map[string]rocketmq.Filter{topic: {SQL: "n >"}}}

	for name, c := range map[string]struct {
		fakes  rocketmqfake.Options
		o      rocketmq.Options
		before func(*world)
		topics []string
		is     error
		says   []string
	}{
		"a name server that is not there": {
			before: func(w *world) { w.fake.StopNameServer() }, is: rocketmq.ErrUnreachable, says: []string{"127.0.0.1:9876"},
		},
		"brokers that are not there": {
			before: func(w *world) { w.fake.Brokers[0].Vanish() }, is: rocketmq.ErrUnreachable, says: []string{"127.0.0.1:10911"},
		},
		"a group that brokers do not make": {
			fakes: rocketmqfake.Options{NoAutoCreate: true}, is: rocketmq.ErrUnknownGroup, says: []string{`"G"`, "updateSubGroup"},
		},
		"a group that is switched off": {
			before: func(w *world) { w.switchOff() }, is: rocketmq.ErrNoPermission, says: []string{`"G"`},
		},
		"SQL that does not parse": {o: sql, is: rocketmq.ErrBadFilter, says: []string{`"T"`, "n >", "Encountered"}},
		"SQL where brokers have it off": {
			fakes: rocketmqfake.Options{NoFilters: true}, o: sql, is: rocketmq.ErrBadFilter, says: []string{"enablePropertyFilter"},
		},
		"a topic that is missing":     {topics: []string{"orders"}, says: []string{`"orders"`, "there are", "T"}},
		"a name that no broker takes": {topics: []string{"or ders"}, says: []string{`"or ders"`}},
		"no topic":                    {topics: []string{}, says: []string{"no topics"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			inBubble(t, c.fakes, c.o, func(w *world) {
				if c.before != nil {
					c.before(w)
				}

				topics := c.topics
				if topics == nil {
					topics = []string{topic}
				}

				_, err := w.Join(w.Context(), consumer.Subscription{Group: group, Topics: topics})
				if err == nil || c.is != nil && !errors.Is(err, c.is) {
					w.Fatalf("got %v", err)
				}

				for _, text := range c.says {
					if !strings.Contains(err.Error(), text) {
						w.Errorf("%q does not say %q", err, text)
					}
				}
			})
		})
	}
}

func (w *world) switchOff() {
	w.Helper()

	if _, err := w.client.Call(w.Context(), w.fake.Brokers[0].Addr, &remoting.Command{
		Code: remoting.UpdateGroup, Body: []byte(`{"groupName":"G","consumeEnable":false}`),
	}); err != nil {
		w.Fatal(err)
	}
}

func TestPullUnderWayEndsWithItsLease(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		w.fake.CreateTopic(topic, 2)

		r := w.join(consumer.Subscription{Instance: "member-1"})
		second := r.owned(pipeline.Queue{Topic: topic, Broker: "b0", ID: 1})
		began := time.Now()
		ended := make(chan error, 1)

		go func() {
			_, err := r.Pull(w.Context(), second, 0, some())
			ended <- err
		}()

		synctest.Wait() // the broker holds the pull
		w.join(consumer.Subscription{Instance: "member-2"})

		if err := <-ended; !errors.Is(err, consumer.ErrNotOwner) || time.Since(began) > time.Second {
			w.Errorf("the pull ended after %v: %v", time.Since(began), err)
		}
	})
}

// A member that leaves while a lock is being renewed, which it turns out to have lost, has given up its queues already.
func TestMemberMayLoseALockWhileItLeaves(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{Orderly: true}, func(w *world) {
		r := w.join(consumer.Subscription{})
		r.owned(first())

		lock := func(code int, client string) {
			body := fmt.Sprintf(`{"consumerGroup":%q,"clientId":%q,"mqSet":[{"brokerName":"b0","queueId":0,"topic":%q}]}`, group, client, topic)
			if _, err := w.client.Call(w.Context(), w.fake.Brokers[0].Addr, &remoting.Command{Code: code, Body: []byte(body)}); err != nil {
				w.Fatal(err)
			}
		}

		lock(remoting.UnlockQueues, w.members()[0])
		lock(remoting.LockQueues, "somebody else")
		w.fake.Fault(rocketmqfake.Faults{LateUpkeep: 2 * time.Second})
		<-time.After(21 * time.Second) // the locks are being renewed

		if err := r.Leave(w.Context()); err != nil {
			w.Error(err)
		}
	})
}
