package embedded

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

const (
	benchBatch = 256
	benchBody  = 1 << 10
)

// BenchmarkBatch publishes batches of 256 messages of 1 KiB with an fsync each and pulls them again, and lets Pebble alone
// do the writes and the scan of the same batches, a few of each in turn, so that the moods of the disk hit both. An
// operation is one batch through the broker and one through Pebble; "ratio" is Pebble's time by the broker's.
func BenchmarkBatch(b *testing.B) {
	const burst = 16

	ours, raw := newOurs(b), newRaw(b)
	rng := rand.New(rand.NewPCG(1, 2))

	var took, rawTook time.Duration

	b.SetBytes(benchBatch * benchBody)

	for done := 0; done < b.N; done += burst {
		n := min(burst, b.N-done)
		took += ours.run(b, rng, n)
		rawTook += raw.run(b, rng, n)
	}

	b.ReportMetric(float64(rawTook)/float64(took), "ratio")
	b.ReportMetric(float64(b.N*benchBatch)/took.Seconds(), "msg/s")
	b.ReportMetric(float64(b.N*benchBatch)/rawTook.Seconds(), "raw-msg/s")
}

func benchMessages(rng *rand.Rand) []*pipeline.Message {
	messages := make([]*pipeline.Message, benchBatch)
	for i := range messages {
		messages[i] = &pipeline.Message{Key: "key-" + strconv.Itoa(rng.IntN(1000)), Body: body(rng, benchBody)}
	}

	return messages
}

func body(rng *rand.Rand, size int) []byte {
	b := make([]byte, size)
	for i := 0; i+8 <= size; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rng.Uint64())
	}

	return b
}

// ours is the broker with one reader of all queues.
type ours struct {
	*world

	reader *participant
	leases []consumer.Lease
	next   []pipeline.Offset
}

func newOurs(b *testing.B) *ours {
	b.Helper()

	const queues = 4

	w := openWorld(b, Options{Dir: b.TempDir()})
	w.topic("t", queues)
	reader := w.join("g", "t")

	return &ours{world: w, reader: reader, leases: reader.await("t", queues), next: make([]pipeline.Offset, queues)}
}

// run publishes and pulls n batches, and returns how long the broker took.
func (o *ours) run(b *testing.B, rng *rand.Rand, n int) time.Duration {
	b.Helper()

	var took time.Duration

	for range n {
		messages := benchMessages(rng)
		start := time.Now()
		o.publish("t", messages...)
		took += time.Since(start)
	}

	start := time.Now()
	pulled := 0

	for i, l := range o.leases {
		for end := pipeline.Offset(-1); o.next[i] != end; {
			batch := o.reader.pull(l, o.next[i], benchBatch)
			pulled += len(batch.Messages)
			o.next[i], end = batch.Next, batch.End
		}
	}

	if n > 0 && pulled != n*benchBatch {
		b.Fatalf("pulled %d messages, want %d", pulled, n*benchBatch)
	}

	return took + time.Since(start)
}

// raw is Pebble with the broker's options and nothing around it.
type raw struct {
	db      *pebble.DB
	written uint64
}

func newRaw(b *testing.B) *raw {
	b.Helper()

	o := pebbleOptions(nil, noLog().Desugar())
	o.FS = vfs.Default

	db, err := pebble.Open(b.TempDir(), o)
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})

	return &raw{db: db}
}

// run writes and scans n batches, and returns how long Pebble took.
func (r *raw) run(b *testing.B, rng *rand.Rand, n int) time.Duration {
	b.Helper()

	var took time.Duration

	first := queueID{}.recordKey(nil, pipeline.Offset(r.written))

	for range n {
		messages := benchMessages(rng)
		start := time.Now()
		batch := r.db.NewBatch()

		for _, m := range messages {
			var key [recordKeyLen]byte

			if err := batch.Set(queueID{}.recordKey(key[:0], pipeline.Offset(r.written)), m.Body, nil); err != nil {
				b.Fatal(err)
			}

			r.written++
		}

		if err := errors.Join(batch.Commit(pebble.Sync), batch.Close()); err != nil {
			b.Fatal(err)
		}

		took += time.Since(start)
	}

	start := time.Now()

	it, err := r.db.NewIter(&pebble.IterOptions{LowerBound: first})
	if err != nil {
		b.Fatal(err)
	}

	scanned := 0

	var copied []byte

	for it.First(); it.Valid(); it.Next() {
		copied = append(copied[:0], it.Value()...)
		scanned += len(copied)
	}

	if err := it.Close(); err != nil || scanned != n*benchBatch*benchBody {
		b.Fatalf("scanned %d bytes, %v", scanned, err)
	}

	return took + time.Since(start)
}

// TestPullAllocatesByTheBatch counts what a pull of 256 messages allocates.
func TestPullAllocatesByTheBatch(t *testing.T) {
	w := openWorld(t, Options{Dir: flakyDir, FS: vfs.NewMem()})
	w.topic("t", 1)
	w.publish("t", benchMessages(rand.New(rand.NewPCG(1, 2)))...)

	m := w.join("g", "t")
	l := m.one("t")

	// Seven, of which four are the batch's own; with the race detector many more, since pools forget on purpose then.
	const most = benchBatch / 2

	if n := testing.AllocsPerRun(100, func() { m.pull(l, 0, benchBatch) }); n > most {
		t.Errorf("a pull of %d messages allocates %v times", benchBatch, n)
	} else {
		t.Logf("%v allocations", n)
	}
}
