package record_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/record"
)

func isTooLarge(err error) bool { return errors.Is(err, record.ErrTooLarge) }

// kinds are the ways in which producers compress, with the bits that say so.
func kinds() map[int32]record.Compression {
	return map[int32]record.Compression{0x001: record.Zlib, 0x301: record.Zlib, 0x101: record.LZ4, 0x201: record.Zstd}
}

// packed is a record with a compressed body.
func packed(tb testing.TB, offset int64, flags int32, body []byte) record.Record {
	tb.Helper()

	c, err := record.NewCompressor(kinds()[flags])
	if err != nil {
		tb.Fatal(err)
	}

	r := sample()
	r.Offset, r.SysFlag = offset, flags|8

	if r.Body, err = c.Compress(body); err != nil {
		tb.Fatal(err)
	}

	return r
}

// batch is the body of a batch.
func batch(tb testing.TB, bodies ...string) (raw []byte) {
	tb.Helper()

	for i, body := range bodies {
		var err error
		if raw, err = record.AppendEntry(raw, record.Entry{
			Flag: int32(i), Body: []byte(body), Props: record.Join(map[string]string{"UNIQ_KEY": "K" + body}),
		}); err != nil {
			tb.Fatal(err)
		}
	}

	return raw
}

// list is what matters of records.
func list(all []record.Record) string {
	var text strings.Builder

	for i := range all {
		fmt.Fprintf(&text, "%d %.5s %s flags %d %x; ", all[i].Offset, all[i].Body, all[i].ID(), all[i].Flag, all[i].SysFlag)
	}

	return text.String()
}

func TestCompressedBodiesAreInflated(t *testing.T) {
	t.Parallel()

	want := strings.Repeat("hello ", 10_000)

	for flags, kind := range kinds() {
		if flags != 1 && kind.SysFlag() != flags {
			t.Errorf("kind %d has the flags %x", kind, kind.SysFlag())
		}

		raw := stored(t, packed(t, 1, flags, []byte(want)), packed(t, 2, flags, []byte(want)))
		if len(raw) > 10_000 {
			t.Errorf("%x: %d bytes", flags, len(raw))
		}

		for i, r := range decode(t, raw, 0) {
			if string(r.Body) != want || r.SysFlag != 8 || r.Offset != int64(i+1) {
				t.Errorf("%x: %d is %.10q of %d bytes with the flags %x", flags, r.Offset, r.Body, len(r.Body), r.SysFlag)
			}
		}
	}
}

//nolint:paralleltest // it counts what is allocated in the meantime
func TestABombIsABoundedError(t *testing.T) {
	const limit = 1 << 20

	d := decoder(t, record.Limits{Body: limit})

	for flags := range kinds() {
		good := packed(t, 6, flags, make([]byte, limit))
		raw := stored(t, good, packed(t, 7, flags, make([]byte, 40*limit)))

		var before, after runtime.MemStats

		runtime.ReadMemStats(&before)

		got, _, err := d.Decode(raw, 0)

		runtime.ReadMemStats(&after)

		damage, ok := errors.AsType[*record.DamagedError](err)
		if !ok || !isTooLarge(err) || damage.Offset != 7 || damage.At != good.Size() || !strings.Contains(err.Error(), "limit") {
			t.Errorf("%x: %v", flags, err)
		}

		if len(got) != 1 || len(got[0].Body) != limit {
			t.Errorf("%x: %d records", flags, len(got))
		}

		// The window of zstd alone is 8 MiB.
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 32*limit {
			t.Errorf("%x: it took %d bytes", flags, spent)
		}
	}
}

func TestInnerBatchesAreTakenApart(t *testing.T) {
	t.Parallel()

	plain := sample()
	plain.SysFlag, plain.Body = 0xC8, batch(t, "one", "two", "three")

	after := sample()
	after.Offset = 45

	const (
		one   = "42 one Kone flags 0 8; "
		two   = "43 two Ktwo flags 1 8; "
		three = "44 three Kthree flags 2 8; "
		last  = "45 hello AC110001 flags 0 0; "
	)

	squeezed := packed(t, 42, 0x201, plain.Body)
	squeezed.SysFlag |= 0xC0

	for name, r := range map[string]record.Record{"plain": plain, "compressed": squeezed} {
		raw := stored(t, r, after)

		for from, want := range map[int64]string{
			0: one + two + three + last, 42: one + two + three + last, 43: two + three + last, 44: three + last, 45: last, 46: "",
		} {
			got := decode(t, raw, from)
			if list(got) != want {
				t.Errorf("%s from %d: %s; want %s", name, from, list(got), want)
			}

			for i := range got {
				if got[i].Physical != plain.Physical || got[i].Born != plain.Born || got[i].Topic != "T" || got[i].Queue != 3 {
					t.Errorf("%s: %+v", name, got[i])
				}
			}
		}
	}
}

func TestDecodingStopsWhenThereIsEnough(t *testing.T) {
	t.Parallel()

	const size = 100_000

	var all []record.Record
	for offset := range int64(10) {
		all = append(all, packed(t, offset, 0x201, make([]byte, size)))
	}

	inner := sample()
	inner.Offset, inner.SysFlag, inner.Body = 10, 0xC0, batch(t, strings.Split(strings.Repeat("x", 5000), "")...)
	raw := stored(t, append(all, inner)...)

	d := decoder(t, record.Limits{Total: 3 * size})

	next, calls := int64(0), 0
	for more := true; more; calls++ {
		var (
			got []record.Record
			err error
		)

		if got, more, err = d.Decode(raw, next); err != nil || len(got) == 0 {
			t.Fatalf("from %d: %d records, %v", next, len(got), err)
		}

		cost := 0

		for i := range got {
			if got[i].Offset != next {
				t.Fatalf("offset %d comes before %d", got[i].Offset, next)
			}

			next++
			cost += len(got[i].Body) + 256
		}

		if cost > 5*size {
			t.Errorf("%d records cost %d", len(got), cost)
		}
	}

	if next != 5010 || calls < 4 {
		t.Errorf("%d records in %d calls", next, calls)
	}
}

// TestDamageIsToldAndCostsNothingElse has a good record before each kind of damage.
func TestDamageIsToldAndCostsNothingElse(t *testing.T) {
	t.Parallel()

	put := func(at int, value uint32) func([]byte) []byte {
		return func(raw []byte) []byte {
			binary.BigEndian.PutUint32(raw[at:], value)

			return raw
		}
	}

	const body = 4*5 + 8*2 + 4 + (8+8)*2 + 4 + 8

	for name, damage := range map[string]struct {
		do     func([]byte) []byte
		offset int64
	}{
		"no length":        {put(0, 0), -1},
		"short length":     {put(0, 90), -1},
		"long length":      {put(0, math.MaxUint32), -1},
		"filler":           {put(4, 0xCBD43194), -1},
		"checksum":         {put(8, 1), 42},
		"offset":           {put(20, 1<<31), -1},
		"body":             {put(body, math.MaxUint32), 42},
		"body too long":    {put(body, 42), 42},
		"port":             {put(4*5+8*2+4+8+4, 1<<16), 42},
		"kind":             {put(36, 0x401), 42},
		"no zlib":          {put(36, 0x001), 42},
		"no LZ4":           {put(36, 0x101), 42},
		"no zstd":          {put(36, 0x201), 42},
		"no batch":         {put(36, 0xC0), 42},
		"cut in the mark":  {func(raw []byte) []byte { return raw[:7] }, -1},
		"cut at the end":   {func(raw []byte) []byte { return raw[:len(raw)-1] }, -1},
		"length one short": {put(0, 124), 42},
	} {
		good := stored(t, sample())
		raw := append(bytes.Clone(good), damage.do(stored(t, sample()))...)

		got, more, err := decoder(t, record.Limits{}).Decode(raw, 0)

		told, ok := errors.AsType[*record.DamagedError](err)
		if !ok || told.Offset != damage.offset || told.At != len(good) || more {
			t.Errorf("%s: %v, more %v", name, err, more)
		}

		if list(got) != "42 hello AC110001 flags 0 0; " {
			t.Errorf("%s: before it come %s", name, list(got))
		}
	}
}

func TestEveryCutIsDamage(t *testing.T) {
	t.Parallel()

	whole := stored(t, sample())
	d := decoder(t, record.Limits{})

	for end := 1; end < len(whole); end++ {
		if got, _, err := d.Decode(whole[:end], 0); err == nil || len(got) > 0 {
			t.Errorf("the first %d bytes are %s, %v", end, list(got), err)
		}
	}
}

func TestChecksums(t *testing.T) {
	t.Parallel()

	for sum, legal := range map[uint32]bool{0: true, crc32.ChecksumIEEE([]byte("hello")) & math.MaxInt32: true, 5: false} {
		raw := stored(t, sample())
		binary.BigEndian.PutUint32(raw[8:], sum)

		if _, _, err := decoder(t, record.Limits{}).Decode(raw, 0); (err == nil) != legal {
			t.Errorf("%x: %v", sum, err)
		}

		if _, _, err := decoder(t, record.Limits{NoChecksums: true}).Decode(raw, 0); err != nil {
			t.Errorf("%x, unchecked: %v", sum, err)
		}
	}
}

func TestWrongLimitsAndKindsAreRefused(t *testing.T) {
	t.Parallel()

	for _, l := range []record.Limits{{Body: -1}, {Body: math.MaxInt}, {Total: -1}} {
		if _, err := record.NewDecoder(l); err == nil {
			t.Errorf("%+v is taken", l)
		}
	}

	if _, err := record.NewCompressor(4); err == nil {
		t.Error("there is a compression 4")
	}
}
