package record_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/record"
)

func TestPropertiesAreReadAsRocketMQDoes(t *testing.T) {
	t.Parallel()

	for text, want := range map[record.Properties]map[string]string{
		"":                               {},
		"a\x01b\x02":                     {"a": "b"},
		"a\x01b\x02c\x01d":               {"a": "b", "c": "d"}, // the last end may be missing
		"a\x01b=c\x01d\x02":              {"a": "b=c\x01d"},
		"a\x01\x02":                      {"a": ""},
		"\x01b\x02\x02c\x02d\x01\x02x":   {"d": ""},
		"a\x011\x02b\x012\x02a\x013\x02": {"a": "1", "b": "2"},
		"größe\x01ü\x02":                 {"größe": "ü"},
	} {
		if got := text.Map(); !maps.Equal(got, want) {
			t.Errorf("%q are %v, want %v", text, got, want)
		}

		for key, value := range want {
			if got, found := text.Get(key); got != value || !found {
				t.Errorf("%s of %q is %q, %v", key, text, got, found)
			}
		}

		if got, found := text.Get("none"); found {
			t.Errorf("%q has none: %q", text, got)
		}

		if again := record.Join(want).Map(); !maps.Equal(again, want) {
			t.Errorf("%v become %v", want, again)
		}
	}

	for key := range record.Properties("a\x011\x02b\x012\x02").All() {
		if key != "a" {
			t.Error("it goes on after the end")
		}

		break
	}
}

func TestPropertiesThatWouldNotArrive(t *testing.T) {
	t.Parallel()

	for pair, legal := range map[[2]string]bool{
		{"a", "b"}: true, {"a", ""}: true, {"", "b"}: false, {"a\x01", "b"}: false, {"a", "b\x02"}: false, {"a", "\x01"}: false,
	} {
		if err := record.CheckProperty(pair[0], pair[1]); (err == nil) != legal {
			t.Errorf("%q: %v", pair, err)
		}
	}
}

func TestEntriesComeBack(t *testing.T) {
	t.Parallel()

	want := []record.Entry{
		{Flag: -1, Body: []byte("one"), Props: "a\x01b\x02"},
		{Body: []byte{}},
		{Flag: 7, Body: []byte(strings.Repeat("x", 10_000)), Props: record.Properties(strings.Repeat("p", 1<<15-1))},
	}

	var (
		raw  []byte
		got  []record.Entry
		size int
	)

	for _, e := range want {
		var err error
		if raw, err = record.AppendEntry(raw, e); err != nil {
			t.Fatal(err)
		}

		size += e.Size()
	}

	if len(raw) != size {
		t.Errorf("%d bytes, want %d", len(raw), size)
	}

	for rest := raw; len(rest) > 0; {
		var (
			e   record.Entry
			err error
		)

		if e, rest, err = record.CutEntry(rest); err != nil {
			t.Fatal(err)
		}

		got = append(got, e)
	}

	if !reflect.DeepEqual(got, want) {
		t.Errorf("they come back as %+v", got)
	}

	for end := range want[0].Size() {
		if e, _, err := record.CutEntry(raw[:end]); err == nil {
			t.Errorf("the first %d bytes are %+v", end, e)
		}
	}

	long := record.Entry{Props: record.Properties(strings.Repeat("p", 1<<15))}
	if raw, err := record.AppendEntry([]byte("before"), long); !errors.Is(err, record.ErrTooLarge) || string(raw) != "before" {
		t.Errorf("too many properties: %d bytes, %v", len(raw), err)
	}
}

func ExampleJoin() {
	props := record.Join(map[string]string{record.PropTags: "TagA", record.PropKeys: "order-7"})
	fmt.Printf("%q\n", props)
	// Output: "KEYS\x01order-7\x02TAGS\x01TagA\x02"
}
