package embedded

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func TestTopicKeepsItsQueueCount(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 3)
	w.topic("t", 3)

	if err := w.CreateTopic(t.Context(), "t", 4); !errors.Is(err, ErrQueueCount) || !strings.Contains(err.Error(), `"t" has 3, not 4`) {
		t.Errorf("another number of queues: %v", err)
	}

	for _, n := range []int{-1, 0, maxQueues + 1} {
		if err := w.CreateTopic(t.Context(), "u", n); err == nil {
			t.Errorf("a topic of %d queues was made", n)
		}
	}

	for _, name := range []string{"", "a b", "a/b", "ü", strings.Repeat("x", maxNameLen+1), "a\x00"} {
		if err := w.CreateTopic(t.Context(), name, 1); !errors.Is(err, ErrBadName) {
			t.Errorf("topic %q: %v, want ErrBadName", name, err)
		}
	}

	w.reopen(Options{Dir: w.options.Dir})
	w.topic("t", 3)

	if topics := w.Topics(); !slices.Equal(topics, []string{"t"}) {
		t.Errorf("topics %v", topics)
	}
}

func TestUnknownTopicIsNamedWithTheKnown(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("b", 1)
	w.topic("a", 1)
	w.join("g", "a")

	_, joining := w.Join(t.Context(), consumer.Subscription{Group: "g", Topics: []string{"a", "c"}})

	for _, err := range []error{joining, w.Publish(t.Context(), "c", []*pipeline.Message{{}})} {
		unknown, ok := errors.AsType[*consumer.UnknownTopicError](err)
		if !ok || unknown.Topic != "c" || !slices.Equal(unknown.Known, []string{"a", "b"}) {
			t.Errorf("%v, want that there are a and b", err)
		}
	}
}

func TestKeyDecidesTheQueue(t *testing.T) {
	t.Parallel()

	const queues, keys = 4, 100

	o := Options{Dir: t.TempDir()}
	w := openWorld(t, o)
	w.topic("t", queues)

	for range 2 {
		for i := range keys {
			w.publish("t", &pipeline.Message{Key: strconv.Itoa(i)}, &pipeline.Message{Tag: "no key"})
		}

		w.reopen(o)
	}

	m := w.join("g", "t")
	queueOf := make(map[string]int)

	for _, l := range m.await("t", queues) {
		all := m.all(l)
		if len(all) == 0 {
			t.Errorf("no message in %s", l.Queue)
		}

		keyless := 0

		for _, message := range all {
			if message.Key == "" {
				keyless++

				continue
			}

			if q, seen := queueOf[message.Key]; seen && q != l.Queue.ID {
				t.Errorf("key %s is in the queues %d and %d", message.Key, q, l.Queue.ID)
			}

			queueOf[message.Key] = l.Queue.ID
		}

		if keyless != 2*keys/queues {
			t.Errorf("%d messages without a key in %s, want %d", keyless, l.Queue, 2*keys/queues)
		}
	}

	// The places are a part of the format: a key must not move to another queue in a later version.
	for key, q := range map[string]int{"0": 3, "1": 0, "99": 3} {
		if queueOf[key] != q {
			t.Errorf("key %s is in queue %d, want %d", key, queueOf[key], q)
		}
	}
}

func TestMessageKeepsWhatItWasPublishedWith(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 1)

	born := time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
	props := map[string]string{"p": "v", "empty": ""}
	before := time.Now()
	w.publish("t",
		&pipeline.Message{ID: "mine", Key: "k", Tag: "tag", Body: []byte("body"), Props: props, Born: born, Topic: "ignored"},
		&pipeline.Message{},
	)

	m := w.join("g", "t")
	l := m.one("t")
	got := m.all(l)

	first := got[0]
	if first.ID != "mine" || first.Key != "k" || first.Tag != "tag" || string(first.Body) != "body" || first.Topic != "t" ||
		!first.Born.Equal(born) || len(first.Props) != 2 || first.Props["p"] != "v" {
		t.Errorf("got %+v", first)
	}

	if want := (pipeline.Origin{Queue: l.Queue, Offset: 0, Epoch: l.Epoch, Delivery: 1}); first.Origin != want {
		t.Errorf("origin %+v, want %+v", first.Origin, want)
	}

	second := got[1]
	if second.ID != fmt.Sprintf("t/0/1@%s", w.dir.store) || second.Born.Before(before) || second.Props != nil || len(second.Body) != 0 {
		t.Errorf("got %+v", second)
	}

	if again := m.pull(l, 1, 1).Messages[0]; again.ID != second.ID {
		t.Errorf("the id was %s and is %s", second.ID, again.ID)
	}
}

func TestPublishIsAllOrNothing(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 1)
	m := w.join("g", "t")
	l := m.one("t")

	huge := &pipeline.Message{Body: make([]byte, maxWrite/8)}
	for _, messages := range [][]*pipeline.Message{{{}, nil}, slices.Repeat([]*pipeline.Message{huge}, 8)} {
		if err := w.Publish(t.Context(), "t", messages); err == nil {
			t.Errorf("%d messages were taken", len(messages))
		}
	}

	if err := w.Publish(t.Context(), "t", slices.Repeat([]*pipeline.Message{huge}, 8)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("1 GiB: %v, want ErrTooLarge", err)
	}

	if end := m.find(l, pipeline.Last); end != 0 {
		t.Errorf("%d messages were stored", end)
	}

	w.publish("t") // none
	w.publishN("t", 1)

	if end := m.find(l, pipeline.Last); end != 1 {
		t.Errorf("the queue ends at %d, want 1", end)
	}
}

// heldDisk holds every sync of the log back until it is let go.
type heldDisk struct {
	vfs.FS

	mu    sync.Mutex
	gate  chan struct{} // closed when syncs may go on; nil before hold. Guarded by mu.
	syncs int           // of the log. Guarded by mu.
	stuck chan struct{} // gets a value for each sync that is held back
}

func newHeldDisk() *heldDisk {
	d := &heldDisk{stuck: make(chan struct{}, 100)}
	d.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if (op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSync) && strings.HasSuffix(op.Path, ".log") {
			d.mu.Lock()
			d.syncs++
			gate := d.gate
			d.mu.Unlock()

			if gate != nil {
				d.stuck <- struct{}{}
				<-gate
			}
		}

		return nil
	}))

	return d
}

func (d *heldDisk) hold() (letGo func()) {
	gate := make(chan struct{})

	d.mu.Lock()
	d.gate, d.syncs = gate, 0
	d.mu.Unlock()

	return func() { close(gate) }
}

// TestNothingIsSeenBeforeItIsDurable publishes while the disk hangs: there is no acknowledgement and nothing to pull, and
// an offset is taken by nobody else.
func TestNothingIsSeenBeforeItIsDurable(t *testing.T) {
	t.Parallel()

	disk := newHeldDisk()
	w := openWorld(t, Options{Dir: flakyDir, FS: disk, HoldPull: time.Millisecond})
	w.topic("t", 1)
	m := w.join("g", "t")
	l := m.one("t")

	letGo := disk.hold()
	acknowledged := make(chan error, 1)

	go func() { acknowledged <- w.Publish(t.Context(), "t", []*pipeline.Message{{}}) }()

	<-disk.stuck

	if batch := m.pull(l, 0, 1); len(batch.Messages) > 0 || batch.End != 0 {
		t.Errorf("pulled %+v before it was durable", batch)
	}

	select {
	case err := <-acknowledged:
		t.Errorf("acknowledged with %v before it was durable", err)
	default:
	}

	letGo()

	if err := <-acknowledged; err != nil {
		t.Fatal(err)
	}

	if batch := m.pull(l, 0, 1); len(batch.Messages) != 1 {
		t.Errorf("pulled %+v after it was durable", batch)
	}
}

// TestPublishersShareASync lets publishers come while the disk is busy with the first one: one more sync serves them all.
func TestPublishersShareASync(t *testing.T) {
	t.Parallel()

	const publishers = 20

	disk := newHeldDisk()
	w := openWorld(t, Options{Dir: flakyDir, FS: disk})
	w.topic("t", 1)

	q := w.topics["t"].queues[0]

	letGo := disk.hold()

	var writes []*tx

	for range publishers { // each one as far as it comes while the disk is busy
		tx, err := w.store.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if err := errors.Join(tx.append(q, &record{}, 0), tx.apply()); err != nil {
			t.Fatal(err)
		}

		if writes = append(writes, tx); len(writes) == 1 {
			<-disk.stuck
		}
	}

	letGo()

	for _, tx := range writes {
		if err := tx.wait(); err != nil {
			t.Error(err)
		}
	}

	if end := q.view().end; end != publishers {
		t.Errorf("the queue ends at %d", end)
	}

	disk.mu.Lock()
	defer disk.mu.Unlock()

	if disk.syncs > 3 {
		t.Errorf("%d syncs for %d publishers, of whom all but one came during the first", disk.syncs, publishers)
	}
}

// TestConcurrentPublishersLeaveNoGap publishes from many goroutines: offsets are dense, and each one's messages in order.
func TestConcurrentPublishersLeaveNoGap(t *testing.T) {
	t.Parallel()

	const publishers, writes, perWrite = 8, 20, 3

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 2)

	var all sync.WaitGroup

	for p := range publishers {
		all.Go(func() {
			for i := range writes {
				var messages []*pipeline.Message
				for j := range perWrite {
					messages = append(messages, &pipeline.Message{Key: strconv.Itoa(p), Body: fmt.Append(nil, i*perWrite+j)})
				}

				if err := w.Publish(t.Context(), "t", messages); err != nil {
					t.Error(err)
				}
			}
		})
	}

	all.Wait()

	m := w.join("g", "t")
	next := make(map[string]int)

	for _, l := range m.await("t", 2) {
		for _, message := range m.all(l) {
			if want := strconv.Itoa(next[message.Key]); string(message.Body) != want {
				t.Fatalf("publisher %s: %s, want %s", message.Key, message.Body, want)
			}

			next[message.Key]++
		}
	}

	for p := range publishers {
		if got := next[strconv.Itoa(p)]; got != writes*perWrite {
			t.Errorf("%d messages of publisher %d", got, p)
		}
	}
}
