package embedded

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// BenchmarkBatch publishes batches of 256 messages of 1 KiB, each of them synced, pulls them again, and does the same
// writes and the same scan with Pebble alone, turn by turn, so that a mood of the disk hits both. "ratio" is Pebble's time
// by the broker's.
func BenchmarkBatch(b *testing.B) {
	const batch, size, burst = 256, 1 << 10, 16

	w := openWorld(b, Options{Dir: b.TempDir()})
	w.topic("bench", 4)
	m := w.join("bench", "bench")
	leases := m.await("bench", 4)

	raw := openRaw(b)
	rng := rand.New(rand.NewPCG(1, 2))
	messages := make([]*pipeline.Message, batch)
	next := make(map[pipeline.Queue]pipeline.Offset)

	var took, rawTook time.Duration

	var written uint64

	b.ReportAllocs()
	b.SetBytes(batch * size)

	for done := 0; done < b.N; done += burst {
		n := min(burst, b.N-done)

		start := time.Now()

		for range n {
			for i := range messages {
				messages[i] = &pipeline.Message{Key: fmt.Sprint("key-", rng.IntN(1000)), Body: body(rng, size)}
			}

			begin := time.Now()
			if err := w.Publish(b.Context(), "bench", messages); err != nil {
				b.Fatal(err)
			}
			took += time.Since(begin)
		}
		_ = start

		begin := time.Now()
		for _, l := range leases {
			for {
				got, err := m.Pull(b.Context(), l, next[l.Queue], consumer.Limit{Messages: batch, Bytes: 1 << 20})
				if err != nil {
					b.Fatal(err)
				}
				next[l.Queue] = got.Next
				if got.Next == got.End {
					break
				}
			}
		}
		took += time.Since(begin)

		from := written
		for range n {
			for i := range messages {
				messages[i] = &pipeline.Message{Body: body(rng, size)}
			}
			begin := time.Now()
			wb := raw.NewBatch()
			for _, m := range messages {
				var key [17]byte
				binary.BigEndian.PutUint64(key[9:], written)
				written++
				_ = wb.Set(key[:], m.Body, nil)
			}
			if err := wb.Commit(pebble.Sync); err != nil {
				b.Fatal(err)
			}
			rawTook += time.Since(begin)
		}

		begin = time.Now()
		var low [17]byte
		binary.BigEndian.PutUint64(low[9:], from)
		it, err := raw.NewIter(&pebble.IterOptions{LowerBound: low[:]})
		if err != nil {
			b.Fatal(err)
		}
		sum := 0
		var copied []byte
		for it.First(); it.Valid(); it.Next() {
			copied = append(copied[:0], it.Value()...)
			sum += len(copied)
		}
		if err := it.Close(); err != nil || sum != n*batch*size {
			b.Fatal(err, sum)
		}
		rawTook += time.Since(begin)
	}

	b.ReportMetric(float64(rawTook)/float64(took), "ratio")
	b.ReportMetric(float64(b.N*batch)/took.Seconds(), "msg/s")
	b.ReportMetric(float64(b.N*batch)/rawTook.Seconds(), "raw-msg/s")
}

func openRaw(b *testing.B) *pebble.DB {
	b.Helper()
	db, err := pebble.Open(b.TempDir(), &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest, Logger: pebbleLog{log: zap.NewNop().Sugar()},
		CacheSize: 32 << 20, MemTableSize: 32 << 20, MemTableStopWritesThreshold: 4, L0CompactionThreshold: 4, L0StopWritesThreshold: 32,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return db
}

func body(rng *rand.Rand, size int) []byte {
	b := make([]byte, size)
	for i := 0; i+8 <= size; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rng.Uint64())
	}
	return b
}
