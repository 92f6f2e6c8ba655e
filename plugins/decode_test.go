package plugins_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/millrace/millrace/plugins"
)

type inner struct {
	Name  string           `option:"name,required"`
	Every plugins.Duration `option:"every"`
}

type all struct {
	Text   string           `option:"text"`
	Flag   bool             `option:"flag"`
	Small  int8             `option:"small"`
	Count  uint             `option:"count"`
	Rate   float64          `option:"rate"`
	Limit  plugins.Size     `option:"limit"`
	Every  plugins.Duration `option:"every"`
	Inner  inner            `option:"inner"`
	Inners []inner          `option:"inners"`
	Table  map[string]int   `option:"table"`
	Odd    map[int]int      `option:"odd"`
	Other  chan int         `option:"other"`
	Free   string
	secret string `option:"secret"`
}

func TestOptionsFillAStruct(t *testing.T) {
	t.Parallel()

	got := all{Text: "kept", Count: 7, Free: "kept"}
	err := plugins.Decode(map[string]any{
		"flag": true, "small": -128, "rate": 2, "limit": "1MiB", "every": "2s",
		"inner":  map[string]any{"name": "a", "every": "1h30m"},
		"inners": []any{map[string]any{"name": "b"}, map[string]any{"name": "c"}},
		"table":  map[string]any{"x": float64(3), "y": int64(4), "z": uint64(5)},
	}, &got)

	want := all{
		Text: "kept", Count: 7, Free: "kept", Flag: true, Small: -128, Rate: 2, Limit: 1 << 20,
		Every:  plugins.Duration(2 * time.Second),
		Inner:  inner{Name: "a", Every: plugins.Duration(90 * time.Minute)},
		Inners: []inner{{Name: "b"}, {Name: "c"}},
		Table:  map[string]int{"x": 3, "y": 4, "z": 5},
	}

	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestEachMistakeIsNamedWithItsPath(t *testing.T) {
	t.Parallel()

	var into all

	err := plugins.Decode(map[string]any{
		"small": 128, "count": -1, "rate": "2", "limit": "1.5MiB", "every": 5, "flag": "yes", "text": nil,
		"inner":  map[string]any{"nam": "a", "every": "-1s"},
		"inners": []any{map[string]any{"name": "b"}, 3, map[string]any{"name": 4}},
		"table":  map[string]any{"x": 1.5},
		"odd":    map[string]any{"1": 1}, "other": 1, "Free": "x", "secret": "x", "sm": 1,
	}, &into)

	mistakes, ok := errors.AsType[*plugins.OptionsError](err)
	if !ok {
		t.Fatalf("the error is %v", err)
	}

	const known = "unknown option; there are: count, every, flag, inner, inners, limit, odd, other, rate, small, table, text"

	want := []plugins.Mistake{
		{Path: "Free", Problem: known},
		{Path: "count", Problem: "is -1, should be a whole number, not negative"},
		{Path: "every", Problem: `"5" is no duration; it is a number with a unit, such as 200ms, 2s or 1h30m`},
		{Path: "flag", Problem: `is the text "yes", should be true or false`},
		{Path: "inner.name", Problem: "is required"},
		{Path: "inner.every", Problem: `"-1s" is negative`},
		{Path: "inner.nam", Problem: `unknown option; did you mean "name"?`},
		{Path: "inners[1]", Problem: "is the number 3, should be options"},
		{Path: "inners[2].name", Problem: "is the number 4, should be text"},
		{Path: "limit", Problem: `"1.5MiB" is no size; it is a whole number of bytes or has a unit, such as 64KiB or 1MiB`},
		{Path: "odd", Problem: "is a table, should be of another kind: a map[int]int cannot be set from options"},
		{Path: "other", Problem: "is the number 1, should be of another kind: a chan int cannot be set from options"},
		{Path: "rate", Problem: `is the text "2", should be a number`},
		{Path: "secret", Problem: known},
		{Path: "sm", Problem: known},
		{Path: "small", Problem: "128 is out of range"},
		{Path: "table.x", Problem: "is 1.5, should be a whole number"},
		{Path: "text", Problem: "is empty, should be text"},
	}

	for i := range max(len(want), len(mistakes.Mistakes)) {
		if i >= len(want) || i >= len(mistakes.Mistakes) || mistakes.Mistakes[i] != want[i] {
			t.Fatalf("mistake %d:\n got %q\nwant %q", i, mistakes.Mistakes[i:], want[min(i, len(want)):])
		}
	}

	if into.secret != "" {
		t.Error("an unexported field was set")
	}
}

func TestOptionsDecodeIntoStructsOnly(t *testing.T) {
	t.Parallel()

	var n int

	for _, into := range []any{nil, n, &n, all{}, (*all)(nil)} {
		if err := plugins.Decode(nil, into); err == nil {
			t.Errorf("%T is no error", into)
		}
	}
}

func TestSizesAreWholeNumbersOfBytes(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]int64{
		"0": 0, "17": 17, "5B": 5, "2KB": 2000, "2 KiB": 2048, "3MB": 3e6, "3MiB": 3 << 20, "1GB": 1e9, "1GiB": 1 << 30,
		"8589934591GiB": 8589934591 << 30,
		"":              -1, "MiB": -1, "-1": -1, "1.5MiB": -1, "1TiB": -1, "1 M": -1, "1KK": -1, "x": -1,
		"8589934592GiB": -1, "9223372036854775808": -1, "99999999999999999999": -1,
	} {
		var s plugins.Size
		if err := s.UnmarshalText([]byte(text)); err != nil {
			s = -1
		}

		if int64(s) != want {
			t.Errorf("%q is %d bytes, want %d", text, s, want)
		}
	}
}
