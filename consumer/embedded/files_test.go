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

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

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

// TestDamagedLogIsReported flips bits all over the log of a broker that was not closed, in writes of all sizes. Damage to
// what was acknowledged is told from a write that a crash broke off, but in the last write, behind which there is nothing.
func TestDamagedLogIsReported(t *testing.T) {
	t.Parallel()

	const writes, flips = 20, 40 // in all less than what makes Pebble start another log

	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))

	dir := t.TempDir()
	w := openWorld(t, Options{Dir: dir})
	w.topic("t", 1)

	logs := files(t, dir, "*.log")
	log := logs[len(logs)-1]
	size := func() int64 { return int64(len(strings.TrimRight(read(t, log), "\x00"))) }

	published, last, lastAt := 0, 0, int64(0)

	for i := range writes {
		last, lastAt = published, size()

		var messages []*pipeline.Message
		for range 1 + rng.IntN(3) + i%5/4*30 {
			messages = append(messages, &pipeline.Message{Body: append(fmt.Appendf(nil, "%d ", published), body(rng, 1000)...)})
			published++
		}

		w.publish("t", messages...)
	}

	end := size()
	crashed := copyFiles(t, dir)

	t.Logf("seed %d, %d bytes of log", seed, end)

	if intact, _, _ := survey(t, copyFiles(t, crashed)); intact != published {
		t.Fatalf("%d of %d messages after a crash", intact, published)
	}

	check := func(at int64, bit int) {
		damagedDir := copyFiles(t, crashed)
		flip(t, files(t, damagedDir, filepath.Base(log))[0], at, bit)

		intact, reported, refused := survey(t, damagedDir)
		if at < lastAt && !refused || at > lastAt+4 && (refused || reported > 0 || intact != last) {
			t.Errorf("bit %d of byte %d (of %d, the last write is at %d): refused %v, %d messages intact of %d, %d reported",
				bit, at, end, lastAt, refused, intact, published, reported)
		}
	}

	for range flips {
		check(rng.Int64N(end), rng.IntN(8))
	}

	for bit := 8 * 4; bit < 8*11; bit++ { // of the first write's head; one makes it look like the end of the log
		check(int64(bit/8), bit%8)
	}

	check(lastAt+walHead+5, 0)
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
