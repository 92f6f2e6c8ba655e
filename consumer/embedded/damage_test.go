package embedded

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// damaged returns a broker with a queue of ten messages, a function that replaces the stored value of one of them (nil
// deletes it), and that value.
func damaged(t *testing.T, o pipeline.Offset) (w *world, replace func(value []byte), value []byte) {
	t.Helper()

	w = openWorld(t, Options{Dir: flakyDir, FS: newFlakyDisk()})
	w.topic("t", 1)
	w.publish("t", someMessages(10)...)

	q, err := w.queue(pipeline.Queue{Topic: "t"})
	if err != nil {
		t.Fatal(err)
	}

	key := q.id.recordKey(nil, o)

	if _, err := w.store.get(key, func(v []byte) error { value = append(value, v...); return nil }); err != nil {
		t.Fatal(err)
	}

	return w, func(value []byte) {
		err := w.store.db.Set(key, value, pebble.Sync)
		if value == nil {
			err = w.store.db.Delete(key, pebble.Sync)
		}

		if err != nil {
			t.Fatal(err)
		}
	}, value
}

func someMessages(n int) []*pipeline.Message {
	messages := make([]*pipeline.Message, n)
	for i := range messages {
		messages[i] = &pipeline.Message{
			Key: fmt.Sprint("key-", i), Tag: "tag", Body: fmt.Appendf(nil, "body %d", i), Props: map[string]string{"p": "v"},
		}
	}

	return messages
}

// wantDamaged checks that a record cannot be read, is said to be damaged, and can be passed by.
func wantDamaged(t *testing.T, m *participant, o pipeline.Offset, what string, cause error) {
	t.Helper()

	l := m.one("t")
	limit := consumer.Limit{Messages: 100, Bytes: 1 << 20}

	if o > 0 {
		if before, err := m.Pull(t.Context(), l, 0, limit); err != nil || before.Next != o || len(before.Messages) != int(o) {
			t.Fatalf("%s: pulled %d to %d, %v; want what is before %d", what, len(before.Messages), before.Next, o, err)
		}
	}

	_, err := m.Pull(t.Context(), l, o, limit)

	damage, ok := errors.AsType[*consumer.DamagedError](err)
	if !ok || damage.Queue != l.Queue || damage.Offset != o || !errors.Is(err, cause) {
		t.Fatalf("%s: %v; want that offset %d is damaged: %v", what, err, o, cause)
	}

	if o == 9 {
		return
	}

	if behind, err := m.Pull(t.Context(), l, o+1, limit); err != nil || behind.Next != behind.End {
		t.Fatalf("%s: behind it: %+v, %v", what, behind, err)
	}

	back := &pipeline.Message{Origin: pipeline.Origin{Queue: l.Queue, Offset: o, Epoch: l.Epoch}}
	if err := m.SendBack(t.Context(), back, 0); !errors.As(err, &damage) {
		t.Fatalf("%s: sent back with %v", what, err)
	}
}

func TestDamagedRecordIsReported(t *testing.T) {
	t.Parallel()

	for _, o := range []pipeline.Offset{0, 4, 9} {
		w, replace, value := damaged(t, o)
		m := w.join("g", "t")

		for bit := range 8 * len(value) {
			flipped := append([]byte(nil), value...)
			flipped[bit/8] ^= 1 << (bit % 8)
			replace(flipped)

			cause := errSum
			if bit < 8 {
				cause = errVersion
			}

			wantDamaged(t, m, o, fmt.Sprintf("bit %d of offset %d", bit, o), cause)
		}

		for size := range len(value) {
			replace(value[:size:size])

			cause := errSum
			if size < envelopeLen {
				cause = errShort
			}

			wantDamaged(t, m, o, fmt.Sprintf("the first %d bytes of offset %d", size, o), cause)
		}

		replace(nil)
		wantDamaged(t, m, o, fmt.Sprintf("no record at offset %d", o), errMissing)

		if d, err := w.Describe(t.Context()); err != nil || d.Damaged == 0 {
			t.Errorf("%d damaged records are counted, %v", d.Damaged, err)
		}

		replace(value)

		if got := m.all(m.one("t")); len(got) != 10 {
			t.Errorf("%d messages after the cure", len(got))
		}
	}
}

// TestRecordOfAnotherPlaceIsDamage puts the bytes of one record in the place of another.
func TestRecordOfAnotherPlaceIsDamage(t *testing.T) {
	t.Parallel()

	w, replace, _ := damaged(t, 4)
	q, _ := w.queue(pipeline.Queue{Topic: "t"})

	if _, err := w.store.get(q.id.recordKey(nil, 5), func(v []byte) error {
		replace(append([]byte(nil), v...))

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	wantDamaged(t, w.join("g", "t"), 4, "another's record", errSum)
}

// TestDamageBeforeATimeIsNotSkipped looks for times around damaged records.
func TestDamageBeforeATimeIsNotSkipped(t *testing.T) {
	t.Parallel()

	w, replace, _ := damaged(t, 9)
	last := w.topics["t"].queues[0].view().stored
	w.publish("t", someMessages(1)...)
	replace(nil)

	m := w.join("g", "t")

	if o := m.find(m.one("t"), pipeline.StartAt(time.Unix(0, last+1))); o != 9 {
		t.Errorf("after the time of the damaged last one comes %d, want 9, which nobody can tell the time of", o)
	}
}

// copyFiles copies a directory of files and directories.
func copyFiles(t *testing.T, from string) string {
	t.Helper()

	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}

	return to
}

// flip flips one bit of a file.
func flip(t *testing.T, path string, at int64, bit int) {
	t.Helper()

	bytes := []byte(read(t, path))
	bytes[at] ^= 1 << bit
	write(t, path, string(bytes))
}

// survey opens a directory and reads everything in it, passing by what is damaged. It returns how many messages were read
// and how many reported as damaged, and checks that nothing is missing between or wrong. A refusal to open must say where.
func survey(t *testing.T, dir string) (intact, reported int, refused bool) {
	t.Helper()

	b, err := Open(Options{Dir: dir})
	if err != nil {
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), dir) {
			t.Errorf("Open: %v, want ErrDamaged and the directory", err)
		}

		return 0, 0, true
	}

	w := &world{Broker: b, t: t}
	defer w.close()

	m := w.join("g", "t")
	l := m.one("t")

	for o, end := m.find(l, pipeline.First), m.find(l, pipeline.Last); o < end; {
		batch, err := m.Pull(t.Context(), l, o, consumer.Limit{Messages: 100, Bytes: 1 << 20})

		if damage, ok := errors.AsType[*consumer.DamagedError](err); ok && damage.Offset == o {
			reported++
			o++

			continue
		}

		if err != nil {
			t.Fatalf("Pull: %v", err)
		}

		for i, message := range batch.Messages {
			want := o + pipeline.Offset(i)
			if message.Origin.Offset != want || !strings.HasPrefix(string(message.Body), fmt.Sprintf("%d ", want)) {
				t.Fatalf("offset %d is %.20q, want %d", message.Origin.Offset, message.Body, want)
			}
		}

		intact += len(batch.Messages)
		o = batch.Next
	}

	return intact, reported, false
}

// fill publishes n messages, each in a write of its own.
func fill(t *testing.T, w *world, n int) {
	t.Helper()

	rng := rand.New(rand.NewPCG(1, 1))

	for i := range n {
		w.publish("t", &pipeline.Message{Body: append(fmt.Appendf(nil, "%d ", i), body(rng, 1000)...)})
	}
}

func files(t *testing.T, dir, pattern string) []string {
	t.Helper()

	found, err := filepath.Glob(filepath.Join(dir, dirPebble, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}

	return found
}

// TestDamagedTableIsReported flips bits all over the tables of a broker that was closed: every message is either read as it
// was published or reported, or the broker does not open and says why.
func TestDamagedTableIsReported(t *testing.T) {
	t.Parallel()

	const messages, flips = 200, 40

	dir := t.TempDir()
	w := openWorld(t, Options{Dir: dir})
	w.topic("t", 1)
	fill(t, w, messages)
	w.close()

	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)

	var reports, refusals int

	for range flips {
		damagedDir := copyFiles(t, dir)
		tables := files(t, damagedDir, "*.sst")
		table := tables[rng.IntN(len(tables))]
		at := rng.Int64N(int64(len(read(t, table))))
		flip(t, table, at, rng.IntN(8))

		intact, reported, refused := survey(t, damagedDir)
		if !refused && intact+reported != messages {
			t.Errorf("%s at %d: %d messages are intact and %d reported, of %d", filepath.Base(table), at, intact, reported, messages)
		}

		if reported > 0 {
			reports++
		}

		if refused {
			refusals++
		}
	}

	t.Logf("of %d flips %d were reported by Pull, %d by Open", flips, reports, refusals)

	if reports == 0 {
		t.Error("no flip was reported by Pull")
	}
}

// TestDamagedLogIsReported flips bits all over the log of a broker that was not closed. The log says with every write how
// much of it was synced before, so damage to what was acknowledged is told from a write that a crash broke off, but only
// from the next block of 32 KiB on: damage in the last block cuts the log off, as docs/embedded.md says.
func TestDamagedLogIsReported(t *testing.T) {
	t.Parallel()

	const messages, flips, block = 90, 40, 32 << 10

	dir := t.TempDir()
	w := openWorld(t, Options{Dir: dir})
	w.topic("t", 1)
	fill(t, w, messages)

	crashed := copyFiles(t, dir)

	if intact, _, _ := survey(t, copyFiles(t, crashed)); intact != messages {
		t.Fatalf("%d of %d messages after a crash", intact, messages)
	}

	logs := files(t, crashed, "*.log")
	log := filepath.Base(logs[len(logs)-1])
	end := int64(len(strings.TrimRight(read(t, logs[len(logs)-1]), "\x00")))

	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d, %d bytes of log", seed, end)

	for range flips {
		damagedDir := copyFiles(t, crashed)
		at := rng.Int64N(end)
		flip(t, files(t, damagedDir, log)[0], at, rng.IntN(8))

		intact, reported, refused := survey(t, damagedDir)
		if last := at >= end/block*block; refused == last || reported > 0 || last && intact < messages*2/3 {
			t.Errorf("bit at %d of %d: refused %v, %d messages intact, %d reported", at, end, refused, intact, reported)
		}
	}
}

// TestTornLogIsTheEndOfACrash cuts the log off inside of each of the last writes: what was acknowledged before is there.
func TestTornLogIsTheEndOfACrash(t *testing.T) {
	t.Parallel()

	const messages = 10

	dir := t.TempDir()
	w := openWorld(t, Options{Dir: dir})
	w.topic("t", 1)

	var ends []int64 // of the log, after each write

	logs := files(t, dir, "*.log")
	log := logs[len(logs)-1]
	size := func() int64 { return int64(len(strings.TrimRight(read(t, log), "\x00"))) }

	for i := range messages {
		w.publish("t", &pipeline.Message{Body: fmt.Appendf(nil, "%d message.", i)})
		ends = append(ends, size())
	}

	crashed := copyFiles(t, dir)

	for cut := ends[len(ends)-3]; cut < ends[len(ends)-1]; cut += 5 {
		var least, most int // a write may end in zeros, which look like space that was not used yet

		for _, end := range ends {
			if end <= cut {
				most++
			}

			if end+4 <= cut {
				least++
			}
		}

		torn := copyFiles(t, crashed)
		if err := os.Truncate(files(t, torn, filepath.Base(log))[0], cut); err != nil {
			t.Fatal(err)
		}

		if intact, reported, refused := survey(t, torn); refused || reported > 0 || intact < least || intact > most {
			t.Errorf("cut at %d: refused %v, %d reported, %d intact, want %d", cut, refused, reported, intact, least)
		}
	}
}
