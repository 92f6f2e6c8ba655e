package record_test

import (
	"encoding/hex"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/record"
)

// vector is one record, written out by hand.
const vector = "0000007d" + "daa320a7" + "3610a686" + "00000003" + "00000000" + "000000000000002a" + "00000000000003e8" + "00000000" +
	"0000018bcfe56800" + "7f000001" + "00003039" + "0000018bcfe56801" + "7f000001" + "00002a9f" + "00000000" + "0000000000000000" +
	"00000005" + "68656c6c6f" + "01" + "54" + "001c" + "554e49515f4b455901414331313030303102" + "54414753015461674102"

// sample is what the vector says.
func sample() record.Record {
	return record.Record{
		Topic: "T", Queue: 3, Offset: 42, Physical: 1000, Born: 1700000000000, Stored: 1700000000001,
		BornHost: netip.MustParseAddrPort("127.0.0.1:12345"), StoreHost: netip.MustParseAddrPort("127.0.0.1:10911"),
		Body: []byte("hello"), Props: "UNIQ_KEY\x01AC110001\x02TAGS\x01TagA\x02",
	}
}

func decoder(tb testing.TB, l record.Limits) *record.Decoder {
	tb.Helper()

	d, err := record.NewDecoder(l)
	if err != nil {
		tb.Fatal(err)
	}

	return d
}

// stored returns records as a broker answers with them.
func stored(tb testing.TB, all ...record.Record) []byte {
	tb.Helper()

	var raw []byte

	for i := range all {
		var err error
		if raw, err = all[i].Append(raw); err != nil {
			tb.Fatal(err)
		}
	}

	return raw
}

// decode decodes what has to be whole.
func decode(tb testing.TB, raw []byte, from int64) []record.Record {
	tb.Helper()

	got, more, err := decoder(tb, record.Limits{}).Decode(raw, from)
	if more || err != nil {
		tb.Fatalf("after %d records: more %v, %v", len(got), more, err)
	}

	return got
}

func TestTheVector(t *testing.T) {
	t.Parallel()

	raw, err := hex.DecodeString(vector)
	if err != nil {
		t.Fatal(err)
	}

	want := sample()

	got := decode(t, raw, 0)
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("it is decoded as %+v, want %+v", got, want)
	}

	if ours := stored(t, want); hex.EncodeToString(ours) != vector || want.Size() != len(raw) {
		t.Errorf("it is encoded as %x with size %d, want %x", ours, want.Size(), raw)
	}

	if got, want := want.OffsetID(), "7F00000100002A9F00000000000003E8"; got != want {
		t.Errorf("its place is %s, want %s", got, want)
	}

	if want.ID() != "AC110001" {
		t.Errorf("its id is %s", want.ID())
	}

	if want.Props = ""; want.ID() != want.OffsetID() {
		t.Errorf("without a key its id is %s", want.ID())
	}
}

func TestEveryKindOfRecordComesBack(t *testing.T) {
	t.Parallel()

	v6 := netip.MustParseAddrPort("[2001:db8::1]:10911")

	kinds := map[string]func(*record.Record){
		"as it is":                           func(*record.Record) {},
		"without properties":                 func(r *record.Record) { r.Props = "" },
		"without a body":                     func(r *record.Record) { r.Body = []byte{} },
		"born at IPv6":                       func(r *record.Record) { r.BornHost, r.SysFlag = v6, 0x10 },
		"stored at IPv6":                     func(r *record.Record) { r.StoreHost, r.SysFlag = v6, 0x20 },
		"at IPv6":                            func(r *record.Record) { r.BornHost, r.StoreHost, r.SysFlag = v6, v6, 0x30 },
		"retry":                              func(r *record.Record) { r.Times = 16 },
		"committed":                          func(r *record.Record) { r.SysFlag, r.Prepared = 8, 77 },
		"flags":                              func(r *record.Record) { r.Flag, r.SysFlag = -5, 2 },
		"longest topic of the first version": func(r *record.Record) { r.Topic = strings.Repeat("t", 127) },
		"topic of the second version":        func(r *record.Record) { r.Topic = strings.Repeat("t", 128) },
		"longest properties":                 func(r *record.Record) { r.Props = record.Properties(strings.Repeat("p", 1<<15-1)) },
		"marked as a batch and not to be unwrapped": func(r *record.Record) { r.SysFlag = 0x80 },
	}

	for name, change := range kinds {
		want := sample()
		change(&want)

		raw := stored(t, want, want)
		if len(raw) != 2*want.Size() {
			t.Errorf("%s: two have %d bytes, want twice %d", name, len(raw), want.Size())
		}

		if second := raw[7] == 0xab; second != (len(want.Topic) > 127) { // the length of the first is a signed byte
			t.Errorf("%s: the mark is %x", name, raw[4:8])
		}

		if got := decode(t, raw, 0); len(got) != 2 || !reflect.DeepEqual(got[0], want) || !reflect.DeepEqual(got[1], want) {
			t.Errorf("%s: it comes back as %+v, want %+v", name, got, want)
		}
	}

	r := sample()
	r.StoreHost = v6

	if got, want := r.OffsetID(), "20010DB8000000000000000000000001"+"00002A9F"+"00000000000003E8"; got != want {
		t.Errorf("the place at IPv6 is %s, want %s", got, want)
	}
}

func TestWhatNoRecordCanHold(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(*record.Record){
		"topic":      func(r *record.Record) { r.Topic = strings.Repeat("t", 1<<15) },
		"properties": func(r *record.Record) { r.Props = record.Properties(strings.Repeat("p", 1<<15)) },
	} {
		r := sample()
		change(&r)

		if raw, err := r.Append([]byte("before")); !isTooLarge(err) || string(raw) != "before" {
			t.Errorf("%s: %d bytes, %v", name, len(raw), err)
		}
	}
}

func TestPlainBodiesArePartsOfTheInput(t *testing.T) {
	t.Parallel()

	raw := stored(t, sample())
	got := decode(t, raw, 0)
	raw[4*5+8*2+4+(8+8)*2+4+8+4] = 'j'

	if string(got[0].Body) != "jello" || cap(got[0].Body) != 5 {
		t.Errorf("the body is %q with room for %d", got[0].Body, cap(got[0].Body))
	}
}
