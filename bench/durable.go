package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline"
)

// What the durable path is promised to reach of Pebble alone, and what it moves a round: batches of 256 messages of 1 KiB,
// each with an fsync of its own, written first and then read by a job of three stages.
const (
	minOfPebble  = 0.7
	batchSize    = 256
	bodySize     = 1 << 10
	batchesRound = 200
	queues       = 4
)

// durable runs the embedded broker with a job over it, and Pebble alone with the same batches.
func durable(o options) ([]line, error) {
	bodies := newBodies()

	ours, raw, ratio, err := turns(o.rounds,
		func() (float64, error) { return throughBroker(o.dir, bodies) },
		func() (float64, error) { return throughPebble(o.dir, bodies) })
	if err != nil {
		return nil, err
	}

	return []line{
		newLine("durable", "1 KiB, fsync, 3 stages, embedded broker", ours, "msg/s"),
		newLine("durable", "the same batches, Pebble: writes and scan", raw, "msg/s"),
		newLine("durable", "broker / Pebble", ratio, "").atLeast(minOfPebble),
	}, nil
}

// newBodies returns the payloads of a round, which do not compress.
func newBodies() [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	bodies := make([][]byte, batchSize*batchesRound)

	for i := range bodies {
		bodies[i] = make([]byte, bodySize)
		for at := 0; at < bodySize; at += 8 {
			binary.LittleEndian.PutUint64(bodies[i][at:], rng.Uint64())
		}
	}

	return bodies
}

// throughBroker returns messages a second, published and consumed.
func throughBroker(dir string, bodies [][]byte) (rate float64, err error) {
	if dir, err = os.MkdirTemp(dir, "bench-broker-"); err != nil {
		return 0, fmt.Errorf("bench: %w", err)
	}

	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	b, err := embedded.Open(embedded.Options{Dir: dir})
	if err != nil {
		return 0, fmt.Errorf("open: %w", err)
	}

	defer func() { err = errors.Join(err, b.Close()) }()

	ctx := context.Background()
	if err := b.CreateTopic(ctx, "bench", queues); err != nil {
		return 0, fmt.Errorf("create: %w", err)
	}

	sink := consumertest.NewCountingSink(int64(len(bodies)))
	start := time.Now()

	for i := 0; i < len(bodies); i += batchSize {
		batch := make([]*pipeline.Message, batchSize)
		for k := range batch {
			batch[k] = &pipeline.Message{Body: bodies[i+k]}
		}

		if err := b.Publish(ctx, "bench", batch); err != nil {
			return 0, fmt.Errorf("publish: %w", err)
		}
	}

	r, err := actors.Start(newJob(sink), b, actors.Options{})
	if err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}

	<-sink.Full()

	took := time.Since(start)

	return float64(len(bodies)) / took.Seconds(), r.Drain(0).Err
}

// throughPebble returns messages a second, written and scanned.
func throughPebble(dir string, bodies [][]byte) (rate float64, err error) {
	if dir, err = os.MkdirTemp(dir, "bench-pebble-"); err != nil {
		return 0, fmt.Errorf("bench: %w", err)
	}

	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	db, err := pebble.Open(dir, pebbleOptions())
	if err != nil {
		return 0, fmt.Errorf("open: %w", err)
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	start := time.Now()

	for i := 0; i < len(bodies); i += batchSize {
		batch := db.NewBatch()

		for k := range batchSize {
			// As the broker does it: the messages of a batch go round the queues.
			if err := batch.Set(key((i+k)%queues, (i+k)/queues), bodies[i+k], nil); err != nil {
				return 0, fmt.Errorf("set: %w", err)
			}
		}

		if err := batch.Commit(pebble.Sync); err != nil {
			return 0, fmt.Errorf("commit: %w", err)
		}
	}

	n, err := scan(db)
	if err != nil {
		return 0, err
	}

	if n != len(bodies) {
		return 0, fmt.Errorf("bench: scanned %d of %d", n, len(bodies))
	}

	return float64(n) / time.Since(start).Seconds(), nil
}

// pebbleOptions are the sizes that the broker uses too.
func pebbleOptions() *pebble.Options {
	const mib = 1 << 20

	return &pebble.Options{
		FormatMajorVersion:          pebble.FormatNewest,
		Logger:                      quiet{},
		CacheSize:                   32 * mib,
		TargetFileSizes:             [...]int64{16 * mib, 32 * mib, 64 * mib, 64 * mib, 64 * mib, 64 * mib, 64 * mib},
		MemTableSize:                32 * mib,
		MemTableStopWritesThreshold: 4,
		L0StopWritesThreshold:       32,
	}
}

func key(queue, offset int) []byte {
	return binary.BigEndian.AppendUint64([]byte{'r', byte(queue)}, uint64(offset))
}

// scan reads every value once and copies it, as whoever wants to keep it must.
func scan(db *pebble.DB) (n int, err error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return 0, fmt.Errorf("scan: %w", err)
	}

	defer func() { err = errors.Join(err, it.Close()) }()

	var slab []byte

	for ok := it.First(); ok; ok = it.Next() {
		if len(slab) < bodySize {
			slab = make([]byte, batchSize*bodySize)
		}

		slab = slab[copy(slab, it.Value()):]
		n++
	}

	if err := it.Error(); err != nil {
		return n, fmt.Errorf("scan: %w", err)
	}

	return n, nil
}

// quiet is a logger that says nothing.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...)) //nolint:forbidigo // Pebble expects that this does not return
}
