package record_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/record"
)

func FuzzDecode(f *testing.F) {
	const limit = 4096

	inner := sample()
	inner.SysFlag, inner.Body = 0xC0, batch(f, "one", "two")

	f.Add(stored(f, sample(), inner), int64(43))

	for flags := range kinds() {
		f.Add(stored(f, packed(f, 1, flags, []byte("hello"))), int64(0))
		f.Add(stored(f, packed(f, 1, flags, make([]byte, 2*limit))), int64(0))
	}

	// Without checksums a changed body is not lost on the first gate.
	d := decoder(f, record.Limits{Body: limit, Total: 4 * limit, NoChecksums: true})

	f.Fuzz(func(t *testing.T, raw []byte, from int64) {
		got, more, err := d.Decode(raw, from)

		if damage, ok := errors.AsType[*record.DamagedError](err); err != nil && (!ok || damage.At < 0 || damage.At >= len(raw)) {
			t.Fatalf("the error is %v", err)
		}

		if more && (len(got) == 0 || err != nil) {
			t.Fatalf("more after %d records, %v", len(got), err)
		}

		if len(got) > 4*limit/256+1 {
			t.Fatalf("%d records", len(got))
		}

		for i := range got {
			r := &got[i]
			if r.Offset < from || len(r.Body) > max(limit, len(raw)) {
				t.Fatalf("offset %d from %d with %d bytes", r.Offset, from, len(r.Body))
			}

			_ = r.ID()
			_ = r.Props.Map()

			again(t, d, r)
		}
	})
}

// again encodes a record and decodes it.
func again(t *testing.T, d *record.Decoder, r *record.Record) {
	t.Helper()

	raw, err := r.Append(nil)
	if err != nil {
		if !isTooLarge(err) {
			t.Fatal(err)
		}

		return
	}

	got, _, err := d.Decode(raw, 0)
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], *r) {
		t.Fatalf("%+v\nbecomes %+v, %v", *r, got, err)
	}
}

func FuzzEntries(f *testing.F) {
	f.Add(batch(f, "one", "two"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for rest := raw; len(rest) > 0; {
			e, after, err := record.CutEntry(rest)
			if err != nil {
				return
			}

			if len(after) >= len(rest) {
				t.Fatal("it goes nowhere")
			}

			rest = after

			out, err := record.AppendEntry(nil, e)
			if err != nil {
				if !isTooLarge(err) {
					t.Fatal(err)
				}

				continue
			}

			if back, none, err := record.CutEntry(out); err != nil || len(none) > 0 || back.Flag != e.Flag ||
				!bytes.Equal(back.Body, e.Body) || back.Props != e.Props {
				t.Fatalf("%+v becomes %+v, %v", e, back, err)
			}
		}
	})
}

func FuzzProperties(f *testing.F) {
	f.Add("a\x01b\x02c\x01d\x02", "a", "b")
	f.Fuzz(func(t *testing.T, text, key, value string) {
		props := record.Properties(text).Map()
		for k, v := range props {
			if got, found := record.Properties(text).Get(k); !found || got != v {
				t.Fatalf("%q of %q is %q, want %q", k, text, got, v)
			}
		}

		if record.CheckProperty(key, value) != nil {
			return
		}

		props[key] = value
		if got := record.Join(props).Map(); !reflect.DeepEqual(got, props) {
			t.Fatalf("%q become %q", props, got)
		}
	})
}
