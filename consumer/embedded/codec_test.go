package embedded

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/millrace/millrace/consumer"
)

// stored returns the value under which a record is stored at a key.
func stored(tb testing.TB, key []byte, r *record) []byte {
	tb.Helper()

	db, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem(), Logger: pebbleLog{log: noLog()}})
	if err != nil {
		tb.Fatal(err)
	}

	batch := db.NewBatch()
	size, err := newEncoder().putRecord(batch, key, r)

	if err := errors.Join(err, batch.Commit(pebble.NoSync)); err != nil {
		tb.Fatal(err)
	}

	value, closer, err := db.Get(key)
	if err != nil {
		tb.Fatal(err)
	}

	copied := bytes.Clone(value)
	if size != len(copied) {
		tb.Errorf("the size was said to be %d, not %d", size, len(copied))
	}

	if err := errors.Join(closer.Close(), db.Close()); err != nil {
		tb.Fatal(err)
	}

	return copied
}

func someRecords() []record {
	return []record{
		{},
		{stored: 1, pos: 2, born: -3, delivery: 4, id: "id", key: "key", tag: "tag", topic: "topic", body: []byte("body")},
		{stored: math.MaxInt64, pos: int64(maxOffset), born: math.MinInt64, delivery: 1, props: map[string]string{"a": "b", "": "c"}},
		{body: make([]byte, 70_000), key: string(make([]byte, 300))},
	}
}

func TestRecordIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()

	key := queueID{topic: 1, queue: 2}.recordKey(nil, 3)

	for _, want := range someRecords() {
		var f fields

		if err := new(decoder).record(key, stored(t, key, &want), &f); err != nil {
			t.Fatalf("reading %+v: %v", want, err)
		}

		var parts []any // it is msgpack to others, too
		if err := msgpack.Unmarshal(stored(t, key, &want)[envelopeLen:], &parts); err != nil || len(parts) != recordFields ||
			parts[5] != want.key || !bytes.Equal(parts[9].([]byte), want.body) {
			t.Errorf("the library reads %v, %v of %+v", parts, err, want)
		}

		got := f.record()
		if !bytes.Equal(got.body, want.body) || !maps.Equal(got.props, want.props) {
			t.Errorf("got body %q and props %v of %+v", got.body, got.props, want)
		}

		got.body, got.props, want.body, want.props = nil, nil, nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// FuzzRecord decodes bytes that are sealed but make no sense, as a fault in a program would leave them.
func FuzzRecord(f *testing.F) {
	key := queueID{}.recordKey(nil, 0)

	for _, r := range someRecords()[:3] {
		f.Add(stored(f, key, &r)[envelopeLen:])
	}

	f.Add([]byte{0x9a, 0, 0, 0, 0, 0xdb, 0xff, 0xff, 0xff, 0xff}) // ten fields, the fifth a string of 4 GiB
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})                   // an array of 4 G fields

	f.Fuzz(func(t *testing.T, payload []byte) {
		value := append(make([]byte, envelopeLen), payload...)
		seal(key, value)

		var parts fields

		d := new(decoder)
		if grown := allocated(func() { _ = d.record(key, value, &parts) }); grown > 64<<10+64*uint64(len(payload)) {
			t.Errorf("%d bytes made it allocate %d", len(payload), grown)
		}

		if d.err == nil && parts.size() > int64(len(payload)) {
			t.Errorf("a message of %d bytes in %d", parts.size(), len(payload))
		}

		if _, err := unseal(key, payload); err == nil { // as it is, it is sealed by chance only
			t.Errorf("%x is accepted", payload)
		}
	})
}

// FuzzCheckpoint decodes bytes as a checkpoint, and stores again what was read.
func FuzzCheckpoint(f *testing.F) {
	key := checkpointKey(1, queueID{})

	for _, c := range []consumer.Checkpoint{{}, {Next: 5, Done: []consumer.Run{{From: 7, To: 9}, {From: 1000, To: 100_000}}}} {
		value, err := newEncoder().checkpoint(key, c)
		if err != nil {
			f.Fatal(err)
		}

		f.Add(slices.Clone(value[envelopeLen:]))
	}

	f.Add([]byte{0x92, 0, 0xdd, 0xff, 0xff, 0xff, 0xff})

	f.Fuzz(func(t *testing.T, payload []byte) {
		value := append(make([]byte, envelopeLen), payload...)
		seal(key, value)

		var (
			c   consumer.Checkpoint
			err error
		)

		if grown := allocated(func() { c, err = new(decoder).checkpoint(key, value) }); grown > 64<<10+64*uint64(len(payload)) {
			t.Errorf("%d bytes made it allocate %d", len(payload), grown)
		}

		if err != nil {
			return
		}

		again, err := newEncoder().checkpoint(key, c)
		if err != nil {
			t.Fatal(err)
		}

		if back, err := new(decoder).checkpoint(key, again); err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%v came back as %v, %v", c, back, err)
		}
	})
}

// allocated returns how many bytes a call allocates, with what others allocate at the same time.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats

	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)

	return after.TotalAlloc - before.TotalAlloc
}
