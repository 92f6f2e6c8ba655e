package embedded

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// returnsOfARun is how many messages a run of returnUntilRefused gives back.
const returnsOfARun = 45

// returnUntilRefused gives messages back until that is refused, in turn as a dead letter, at once and with a delay. It returns
// how many were confirmed, and how many were tried.
func returnUntilRefused(t *testing.T, disk vfs.FS) (confirmed, tried int) {
	t.Helper()

	b, err := Open(Options{Dir: flakyDir, FS: disk})
	if err != nil {
		return 0, 0
	}

	w := &world{Broker: b, t: t}
	defer func() { _ = w.Close() }() // says what the return has said

	if b.CreateTopic(t.Context(), "t", 1) != nil || b.Publish(t.Context(), "t", someMessages(returnsOfARun)) != nil {
		return 0, 0
	}

	member, err := b.Join(t.Context(), consumer.Subscription{Group: "g", Topics: []string{"t"}})
	if err != nil {
		return 0, 0
	}

	m := &participant{Member: member, t: t}
	l := m.one("t")

	batch, err := m.Pull(t.Context(), l, 0, consumer.Limit{Messages: returnsOfARun, Bytes: 1 << 20})
	if err != nil {
		return 0, 0
	}

	for i, message := range batch.Messages {
		tried++

		switch i % 3 {
		case 0:
			err = m.DeadLetter(t.Context(), message, consumer.Cause{Stage: "s"})
		case 1:
			err = m.SendBack(t.Context(), message, 0)
		default:
			err = m.SendBack(t.Context(), message, time.Hour)
		}

		if err != nil {
			return confirmed, tried
		}

		confirmed = tried
	}

	return confirmed, tried
}

// wantReturned opens the broker and checks that what was confirmed is there once and finished where it was, and that what was
// refused is so altogether or not at all.
func wantReturned(t *testing.T, what string, disk vfs.FS, confirmed, tried int) {
	t.Helper()

	if tried == 0 {
		return
	}

	w := openWorld(t, Options{Dir: flakyDir, FS: disk})
	defer w.close()

	copies := make(map[string]int)

	for group, topic := range map[string]string{"retries": consumer.RetryTopic("g"), "letters": consumer.DeadLetterTopic("g")} {
		if _, err := w.Broker.topic(topic); err != nil {
			continue // not made yet
		}

		reader := w.join(group, topic)
		for _, message := range reader.all(reader.one(topic)) {
			copies[message.Props[consumer.PropOriginOffset]]++
		}
	}

	decoder := new(decoder)

	err := w.store.scanKind(kindDelayed, "delayed messages", func(key, value []byte) error {
		var f fields

		err := decoder.record(key, value, &f)
		r := f.record()
		copies[r.props[consumer.PropOriginOffset]]++

		return err
	})
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}

	m := w.join("g", "t")

	c, err := m.Stored(t.Context(), m.one("t").Queue)
	if err != nil && confirmed > 0 {
		t.Errorf("%s: %v", what, err)
	}

	for i := range returnsOfARun {
		o := pipeline.Offset(i)
		finished := o < c.Next || slices.ContainsFunc(c.Done, func(r consumer.Run) bool { return r.From <= o && o < r.To })
		n := copies[strconv.Itoa(i)]

		if i < confirmed && (n != 1 || !finished) || i >= confirmed && (n != 0) != finished || n > 1 || i >= tried && finished {
			t.Errorf("%s: %d of %d confirmed; offset %d has %d copies, and is finished: %v", what, confirmed, tried, i, n, finished)
		}
	}
}

// TestRefusedReturnIsWholeOrNothing breaks the disk at writes and syncs in turn while messages are sent back and dead-lettered:
// each is in one place, where the group was told that it is, or where it has always been.
func TestRefusedReturnIsWholeOrNothing(t *testing.T) {
	t.Parallel()

	whole, counted := newTornDisk(), newFlakyDisk()
	for _, disk := range []vfs.FS{whole, counted} {
		if confirmed, _ := returnUntilRefused(t, disk); confirmed != returnsOfARun {
			t.Fatalf("%d of %d were returned", confirmed, returnsOfARun)
		}
	}

	const step = 8 // every one would take a minute with the race detector

	seed := time.Now().UnixNano()
	t.Logf("seed %d, %d writes, %d syncs", seed, whole.writes.Load(), whole.syncs.Load())

	var refusals int

	check := func(what string, disk vfs.FS, memory *vfs.MemFS, mend func()) {
		confirmed, tried := returnUntilRefused(t, disk)
		if tried > confirmed {
			refusals++
		}

		cut := memory.CrashClone(vfs.CrashCloneCfg{})

		mend()
		wantReturned(t, what, disk, confirmed, tried)
		wantReturned(t, what+", then a power cut", cut, confirmed, tried)
	}

	for _, kind := range []struct {
		name string
		last int64
		fail func(*tornDisk) *atomic.Int64
	}{
		{"half of write", whole.writes.Load(), func(d *tornDisk) *atomic.Int64 { return &d.failWrite }},
		{"sync", whole.syncs.Load(), func(d *tornDisk) *atomic.Int64 { return &d.failSync }},
	} {
		for n := 1 + seed%step; n <= kind.last; n += step {
			disk := newTornDisk()
			kind.fail(disk).Store(n)
			check(fmt.Sprintf("%s %d fails", kind.name, n), disk, disk.memory, disk.mend)
		}
	}

	for n := 1 + seed%step; n <= counted.writes.Load(); n += step {
		for _, times := range []int64{1, 1 << 40} {
			disk := newFlakyDisk()
			disk.breakAt(n, times)
			check(fmt.Sprintf("no room for write %d, %d times", n, times), disk, disk.memory, disk.mend)
		}
	}

	if refusals == 0 {
		t.Error("nothing was refused")
	}
}
