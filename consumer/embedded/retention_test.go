package embedded

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// retained returns a broker whose topic t holds ten messages, stored at the times 0, 1 h, 2 h, ... before now, oldest first.
func retained(t *testing.T, o Options) *world {
	t.Helper()

	const n = 10

	o.Dir = t.TempDir()
	o.PruneEvery = time.Hour
	w := openWorld(t, o)
	w.topic("t", 1)
	w.publishN("t", n)

	times := make([]int64, n)
	for i := range times {
		times[i] = time.Now().Add(-time.Duration(n-1-i) * time.Hour).UnixNano()
	}

	rewrite(t, w, times)

	return w
}

func (w *world) prune1() Pruned {
	w.t.Helper()

	all, err := w.Prune(w.t.Context())
	if err != nil || len(all) > 1 {
		w.t.Fatalf("Prune: %v, %v", all, err)
	}

	if len(all) == 0 {
		return Pruned{}
	}

	return all[0]
}

func wantPruned(t *testing.T, got Pruned, from, to pipeline.Offset, unread, held map[string]int64) {
	t.Helper()

	if got.From != from || got.To != to || !maps.Equal(got.Unread, unread) || !maps.Equal(got.Held, held) {
		t.Errorf("pruned %+v, want %d to %d, unread %v, held %v", got, from, to, unread, held)
	}
}

func TestOldMessagesArePruned(t *testing.T) {
	t.Parallel()

	var told []Pruned

	w := retained(t, Options{
		Retention: Retention{Age: 4*time.Hour - time.Minute}, OnPrune: func(p Pruned) { told = append(told, p) },
	})
	wantPruned(t, w.prune1(), 0, 6, nil, nil)
	wantPruned(t, w.prune1(), 0, 0, nil, nil)

	m := w.join("g", "t")
	l := m.one("t")

	if got := bodies(m.all(l)); m.find(l, pipeline.First) != 6 || len(got) != 4 {
		t.Errorf("%q are left", got)
	}

	_, err := m.Pull(t.Context(), l, 5, consumer.Limit{Messages: 1, Bytes: 1})
	if out, ok := errors.AsType[*consumer.OutOfRangeError](err); !ok || out.First != 6 || out.End != 10 {
		t.Errorf("a pull of what was pruned: %v", err)
	}

	w.reopen(w.options)

	d, err := w.Describe(t.Context())
	if q := d.Topics[1].Queues[0]; err != nil || q.First != 6 || q.End != 10 || len(told) != 1 {
		t.Errorf("after a restart %+v, %v; told %v", q, err, told)
	}
}

func TestTopicKeepsItsSize(t *testing.T) {
	t.Parallel()

	const queues, kept, size = 2, 5, 1000

	o := Options{
		Dir: t.TempDir(), PruneEvery: time.Hour, Retention: Retention{Age: time.Hour},
		Topics: map[string]Retention{"t": {Bytes: queues * kept * (size + 40)}},
	}
	w := openWorld(t, o)
	w.topic("t", queues)

	for range 2 {
		for range 20 {
			w.publish("t", &pipeline.Message{Body: make([]byte, size)}, &pipeline.Message{Body: make([]byte, size)})
		}

		all, err := w.Prune(t.Context())
		if err != nil || len(all) != queues {
			t.Fatalf("pruned %v, %v", all, err)
		}

		d, err := w.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		for _, q := range d.Topics[0].Queues {
			if n := q.End - q.First; n != kept || q.Bytes < kept*size || q.Bytes > kept*(size+40) {
				t.Errorf("%s holds %d messages, %d bytes; want %d messages", q.Queue, n, q.Bytes, kept)
			}
		}

		if d.Pruned == 0 {
			t.Error("nothing is counted")
		}

		w.reopen(o)
	}
}

// TestUnreadMessagesAreKept prunes what groups have not read, with the policy to keep it.
func TestUnreadMessagesAreKept(t *testing.T) {
	t.Parallel()

	core, logs := observer.New(zap.WarnLevel)
	w := retained(t, Options{Retention: Retention{Age: time.Hour / 2}, Logger: zap.New(core)})

	reader := w.join("reader", "t")
	l := reader.one("t")
	reader.pull(l, 4, 1) // reads from 4 on, without a commit yet
	wantPruned(t, w.prune1(), 0, 4, nil, map[string]int64{"reader": 5})

	if held := logs.FilterMessageSnippet("keeps messages"); held.Len() != 1 {
		t.Errorf("%d warnings", held.Len())
	}

	slow := w.join("slow", "t") // has not read anything
	wantPruned(t, w.prune1(), 4, 4, nil, map[string]int64{"reader": 5, "slow": 5})

	reader.commit(l, consumer.Checkpoint{Next: 9})
	reader.leave()
	slow.commit(slow.one("t"), consumer.Checkpoint{Next: 6, Done: []consumer.Run{{From: 7, To: 9}}})
	slow.leave()
	wantPruned(t, w.prune1(), 4, 6, nil, map[string]int64{"slow": 3})

	w.reopen(w.options)
	wantPruned(t, w.prune1(), 6, 6, nil, map[string]int64{"slow": 3})
}

// TestUnreadMessagesAreDroppedAloud prunes what groups have not read, with the policy to drop it.
func TestUnreadMessagesAreDroppedAloud(t *testing.T) {
	t.Parallel()

	core, logs := observer.New(zap.WarnLevel)
	w := retained(t, Options{Retention: Retention{Age: time.Hour / 2, Unread: DropUnread}, Logger: zap.New(core)})

	m := w.join("g", "t")
	m.commit(m.one("t"), consumer.Checkpoint{Next: 2})
	wantPruned(t, w.prune1(), 0, 9, map[string]int64{"g": 7}, nil)

	if dropped := logs.FilterMessageSnippet("have not read"); dropped.Len() != 1 {
		t.Errorf("%d warnings", dropped.Len())
	}
}

// TestRetryTopicIsTheGroups keeps what waits for a group that is away.
func TestRetryTopicIsTheGroups(t *testing.T) {
	t.Parallel()

	o := Options{Dir: t.TempDir(), PruneEvery: time.Hour, Topics: map[string]Retention{consumer.RetryTopic("g"): {Bytes: 1}}}
	w := openWorld(t, o)
	w.topic("t", 1)
	w.publishN("t", 2)

	m := w.join("g", "t")
	for _, message := range m.pull(m.one("t"), 0, 2).Messages {
		m.sendBack(message, 0)
	}

	m.leave()
	wantPruned(t, w.prune1(), 0, 0, nil, map[string]int64{"g": 2})
}

// TestRetentionRunsByItself waits for the broker to prune.
func TestRetentionRunsByItself(t *testing.T) {
	t.Parallel()

	pruned := make(chan Pruned, 100)
	w := openWorld(t, Options{
		Dir: t.TempDir(), Retention: Retention{Age: 1}, PruneEvery: 10 * time.Millisecond,
		OnPrune: func(p Pruned) { pruned <- p },
	})
	w.topic("t", 1)
	w.publishN("t", 3)

	for last := pipeline.Offset(0); last < 3; {
		last = (<-pruned).To
	}
}

// TestPullBesidePruning pulls what is being pruned, while the disk hangs: what is gone already is not taken for damage.
func TestPullBesidePruning(t *testing.T) {
	t.Parallel()

	disk := newHeldDisk()
	w := openWorld(t, Options{Dir: flakyDir, FS: disk, PruneEvery: time.Hour, Topics: map[string]Retention{"t": {Bytes: 1}}})
	w.topic("t", 1)
	w.publishN("t", 5)

	m := w.join("g", "t")
	l := m.one("t")
	m.commit(l, consumer.Checkpoint{Next: 5})

	letGo := disk.hold()
	pruned := make(chan error)

	go func() {
		_, err := w.Prune(t.Context())
		pruned <- err
	}()

	<-disk.stuck

	_, err := m.Pull(t.Context(), l, 0, consumer.Limit{Messages: 1, Bytes: 1})
	if out, ok := errors.AsType[*consumer.OutOfRangeError](err); !ok || out.First != 5 {
		t.Errorf("%v; want that the queue begins at 5", err)
	}

	letGo()

	if err := <-pruned; err != nil {
		t.Error(err)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 2)
	w.publishN("t", 10)

	m := w.subscribe(consumer.Subscription{Group: "g", Topics: []string{"t"}, Instance: "one"})
	leases := m.await("t", 2)
	m.commit(leases[0], consumer.Checkpoint{Next: 2})
	m.sendBack(m.pull(leases[1], 0, 1).Messages[0], time.Hour)
	w.subscribe(consumer.Subscription{Group: "h", Topics: []string{"t"}, Instance: "two", Broadcast: true})

	d, err := w.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, topic := range d.Topics {
		for _, q := range topic.Queues {
			got = append(got, fmt.Sprint(q.Queue, " ", q.First, " ", q.End, " ", q.Bytes > 0))
		}
	}

	for _, g := range d.Groups {
		got = append(got, fmt.Sprint(g.Name, " ", g.Members, " ", g.Offsets))
	}

	want := []string{
		"%RETRY%g/0 0 0 false", "t/0 0 5 true", "t/1 0 5 true",
		"g [one] [{t/0 2 3} {t/1 0 5}]", "h/two [two] []",
	}
	if !slices.Equal(got, want) || d.Delayed != 1 || d.Dir != w.options.Dir || d.Damaged != 0 || d.Pruned != 0 {
		t.Errorf("got %q, %+v; want %q", got, d, want)
	}
}
