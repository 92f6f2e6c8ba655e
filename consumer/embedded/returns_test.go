package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func (p *participant) sendBack(m *pipeline.Message, delay time.Duration) {
	p.t.Helper()

	if err := p.SendBack(p.t.Context(), m, delay); err != nil {
		p.t.Fatalf("SendBack of offset %d: %v", m.Origin.Offset, err)
	}
}

func (p *participant) deadLetter(m *pipeline.Message, c consumer.Cause) {
	p.t.Helper()

	if err := p.DeadLetter(p.t.Context(), m, c); err != nil {
		p.t.Fatalf("DeadLetter of offset %d: %v", m.Origin.Offset, err)
	}
}

func (p *participant) stored(l consumer.Lease) consumer.Checkpoint {
	p.t.Helper()

	c, err := p.Stored(p.t.Context(), l.Queue)
	if err != nil {
		p.t.Fatalf("Stored of %s: %v", l.Queue, err)
	}

	return c
}

func wantCheckpoint(t *testing.T, got, want consumer.Checkpoint) {
	t.Helper()

	if got.Next != want.Next || !slices.Equal(got.Done, want.Done) {
		t.Errorf("stored is %v, want %v", got, want)
	}
}

// TestReturnedMessageOutlivesTheProcess sends messages back and dies without a commit: each comes once, at its time, and
// none of them a second time from where it was.
func TestReturnedMessageOutlivesTheProcess(t *testing.T) {
	t.Parallel()

	const delay = 300 * time.Millisecond

	disk := vfs.NewCrashableMem()
	o := Options{Dir: flakyDir, FS: disk}
	w := openWorld(t, o)
	w.topic("t", 1)
	w.publish("t", someMessages(6)...)

	m := w.join("g", "t")
	l := m.one("t")
	pulled := m.pull(l, 1, 5).Messages // from 1 on: this group does not begin at the first
	start := time.Now()
	m.sendBack(pulled[1], delay)
	m.sendBack(pulled[3], 0)
	m.deadLetter(pulled[0], consumer.Cause{Stage: "s", Deliveries: 1})

	o.FS = disk.CrashClone(vfs.CrashCloneCfg{})
	w = openWorld(t, o)
	m = w.join("g", "t")
	l = m.one("t")
	wantCheckpoint(t, m.stored(l), consumer.Checkpoint{Next: 1}.With(consumer.Run{From: 1, To: 3}, consumer.Run{From: 4, To: 5}))

	retry := m.one(consumer.RetryTopic("g"))
	first := m.pull(retry, 0, 1)
	second := m.pull(retry, first.Next, 1)

	if took := time.Since(start); took < delay {
		t.Errorf("the delayed message came after %v, want %v", took, delay)
	}

	for i, got := range []*pipeline.Message{first.Messages[0], second.Messages[0]} {
		want := pulled[[]int{3, 1}[i]]
		if got.ID != want.ID || got.Key != want.Key || got.Tag != want.Tag || !bytes.Equal(got.Body, want.Body) ||
			got.Topic != "t" || got.Props["p"] != "v" || !got.Born.Equal(want.Born) {
			t.Errorf("got %+v, want what was %+v", got, want)
		}

		if got.Origin != (pipeline.Origin{Queue: retry.Queue, Offset: pipeline.Offset(i), Epoch: retry.Epoch, Delivery: 2}) {
			t.Errorf("origin %+v", got.Origin)
		}

		if got.Props[consumer.PropOriginOffset] != fmt.Sprint(want.Origin.Offset) || got.Props[consumer.PropOriginQueue] != "t/0" {
			t.Errorf("props %v", got.Props)
		}
	}

	if end := m.find(retry, pipeline.Last); end != 2 {
		t.Errorf("%d messages in the retry topic, want 2", end)
	}
}

// TestMarksGoWithTheCommit commits over returned offsets: they are forgotten below the commit and kept above.
func TestMarksGoWithTheCommit(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 1)
	w.publishN("t", 10)

	m := w.join("g", "t")
	l := m.one("t")
	pulled := m.pull(l, 0, 10).Messages

	for _, i := range []int{2, 5, 8} {
		m.sendBack(pulled[i], time.Hour)
	}

	m.commit(l, consumer.Checkpoint{Next: 6})

	marks := 0
	if err := w.store.scanKind(kindReturned, "marks", func([]byte, []byte) error { marks++; return nil }); err != nil || marks != 1 {
		t.Errorf("%d marks are left, %v, want 1", marks, err)
	}

	wantCheckpoint(t, m.stored(l), consumer.Checkpoint{Next: 6, Done: []consumer.Run{{From: 8, To: 9}}})
}

// TestReturnsTogetherMakeOneCopy returns one message from many goroutines at once.
func TestReturnsTogetherMakeOneCopy(t *testing.T) {
	t.Parallel()

	const at = 8

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 1)
	w.publishN("t", 1)

	m := w.join("g", "t")
	message := m.pull(m.one("t"), 0, 1).Messages[0]
	done := make(chan error)

	for i := range at {
		go func() {
			if i%2 == 0 {
				done <- m.SendBack(t.Context(), message, 0)
			} else {
				done <- m.DeadLetter(t.Context(), message, consumer.Cause{})
			}
		}()
	}

	for range at {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}

	d, err := w.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	copies := pipeline.Offset(0)
	for _, topic := range d.Topics {
		if topic.Name != "t" {
			copies += topic.Queues[0].End
		}
	}

	if copies != 1 {
		t.Errorf("%d copies, want 1", copies)
	}
}

// TestDelayedComeInTheOrderOfTheirTimes sends back with random delays, over restarts.
func TestDelayedComeInTheOrderOfTheirTimes(t *testing.T) {
	t.Parallel()

	const n = 300

	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)

	o := Options{Dir: t.TempDir(), NoSync: true}
	w := openWorld(t, o)
	w.topic("t", 1)
	w.publishN("t", n)

	due := make(map[string]time.Time)

	for part := range 3 {
		m := w.join("g", "t")
		for _, message := range m.pull(m.one("t"), pipeline.Offset(part*n/3), n/3).Messages {
			delay := time.Duration(rng.Int64N(int64(400 * time.Millisecond)))
			due[string(message.Body)] = time.Now().Add(delay)
			m.sendBack(message, delay)
		}

		w.reopen(o)
	}

	m := w.join("g", "t")
	retry := m.one(consumer.RetryTopic("g"))
	seen := make(map[string]bool)

	for from := pipeline.Offset(0); from < n; {
		batch := m.pull(retry, from, n)
		for _, message := range batch.Messages {
			if early := time.Until(due[string(message.Body)]); seen[string(message.Body)] || early > 0 {
				t.Errorf("%s came %v too early, or again: %v", message.Body, early, seen)
			}

			seen[string(message.Body)] = true
		}

		from = batch.Next
	}

	if d, err := w.Describe(t.Context()); err != nil || d.Delayed != 0 || len(seen) != n {
		t.Errorf("%d came, %d still wait, %v", len(seen), d.Delayed, err)
	}
}

// TestEarlierDelayOvertakes sends back with a long delay first: the short one does not wait for it.
func TestEarlierDelayOvertakes(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 1)
	w.publishN("t", 3)

	m := w.join("g", "t")
	pulled := m.pull(m.one("t"), 0, 3).Messages
	m.sendBack(pulled[0], 1<<63-1) // the longest that can be said
	m.sendBack(pulled[1], time.Hour)
	m.sendBack(pulled[2], time.Millisecond)

	if got := m.pull(m.one(consumer.RetryTopic("g")), 0, 10).Messages; len(got) != 1 || string(got[0].Body) != "2" {
		t.Errorf("got %q", bodies(got))
	}
}

// TestDamagedDelayedMessageIsReported damages what waits for its time: whoever pulls it is told, and the next one comes.
func TestDamagedDelayedMessageIsReported(t *testing.T) {
	t.Parallel()

	o := Options{Dir: t.TempDir()}
	w := openWorld(t, o)
	w.topic("t", 1)
	w.publishN("t", 2)

	m := w.join("g", "t")

	const delay = 200 * time.Millisecond

	for _, message := range m.pull(m.one("t"), 0, 2).Messages {
		m.sendBack(message, delay)
	}

	spoilt := false

	err := w.store.scanKind(kindDelayed, "delayed", func(key, value []byte) error {
		if spoilt {
			return nil
		}

		spoilt = true
		value = append([]byte(nil), value...)
		value[len(value)-1] ^= 1

		return w.store.db.Set(key, value, nil)
	})
	if err != nil {
		t.Fatal(err)
	}

	retry := m.one(consumer.RetryTopic("g"))
	limit := consumer.Limit{Messages: 10, Bytes: 1 << 20}

	_, err = m.Pull(t.Context(), retry, 0, limit)
	if damage, ok := errors.AsType[*consumer.DamagedError](err); !ok || damage.Offset != 0 || damage.Queue != retry.Queue {
		t.Errorf("the damaged one: %v", err)
	}

	if got := m.pull(retry, 1, 10).Messages; len(got) != 1 || string(got[0].Body) != "1" {
		t.Errorf("behind it: %q", bodies(got))
	}
}

func TestDeadLetterTopicIsMadeWhenMissing(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 1)
	w.topic("graves", 3)
	w.publish("t", someMessages(9)...)

	m := w.join("g", "t")

	for i, message := range m.pull(m.one("t"), 0, 9).Messages {
		topic := []string{"", "own", "graves"}[i%3]
		message.Body = []byte("spoilt")
		m.deadLetter(message, consumer.Cause{Topic: topic, Stage: "c/s", Error: "no", Stack: "main.go", Deliveries: 4})
	}

	if err := m.DeadLetter(t.Context(), &pipeline.Message{}, consumer.Cause{Topic: "a b"}); !errors.Is(err, ErrBadName) {
		t.Errorf("a dead letter to a bad name: %v", err)
	}

	mourner := w.join("mourners", consumer.DeadLetterTopic("g"), "own", "graves")

	for topic, queues := range map[string]int{consumer.DeadLetterTopic("g"): 1, "own": 1, "graves": 3} {
		var got []*pipeline.Message
		for _, l := range mourner.await(topic, queues) {
			got = append(got, mourner.all(l)...)
		}

		if len(got) != 3 {
			t.Errorf("%d dead letters in %s, want 3", len(got), topic)
		}

		for _, message := range got {
			want := map[string]string{
				"p": "v", consumer.PropOriginID: message.ID, consumer.PropOriginTopic: "t", consumer.PropOriginQueue: "t/0",
				consumer.PropOriginOffset: message.Props[consumer.PropOriginOffset], consumer.PropDeadStage: "c/s",
				consumer.PropDeadError: "no", consumer.PropDeadStack: "main.go", consumer.PropDeadDeliveries: "4",
				consumer.PropDeadGroup: "g", consumer.PropDeadTime: message.Props[consumer.PropDeadTime],
			}
			if message.Topic != topic || message.Origin.Delivery != 1 || fmt.Sprint(message.Props) != fmt.Sprint(want) ||
				string(message.Body) != "body "+message.Props[consumer.PropOriginOffset] {
				t.Errorf("got %+v, want the properties %v", message, want)
			}
		}
	}
}

func TestBroadcastReturnsNothing(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 1)
	w.publishN("t", 1)

	m := w.subscribe(consumer.Subscription{Group: "g", Topics: []string{"t"}, Broadcast: true, Instance: "one"})
	message := m.pull(m.one("t"), 0, 1).Messages[0]

	for _, err := range []error{
		m.SendBack(t.Context(), message, 0), m.DeadLetter(t.Context(), message, consumer.Cause{}),
	} {
		if !errors.Is(err, ErrBroadcast) {
			t.Errorf("%v, want ErrBroadcast", err)
		}
	}

	if topics := w.Topics(); !slices.Equal(topics, []string{"t"}) {
		t.Errorf("there are the topics %v now", topics)
	}
}
