package document_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/document"
)

func parse(tb testing.TB, body string) *document.Document {
	tb.Helper()

	d, err := document.Parse([]byte(body))
	if err != nil {
		tb.Fatal(err)
	}

	return d
}

func path(tb testing.TB, text string) document.Path {
	tb.Helper()

	p, err := document.ParsePath(text)
	if err != nil {
		tb.Fatal(err)
	}

	return p
}

func TestFieldsAreFoundWhereTheyStand(t *testing.T) {
	t.Parallel()

	d := parse(t, ` {"a":1, "b" : {"c":[10,{"d":"x\"y"},[]],"":2},"a b":true,"\u0065":null,"f":-1.5e3,"a":{"last":1} } `)

	for at, want := range map[string]string{
		"a": `{"last":1}`, "b.c[0]": "10", "b.c[1].d": `"x\"y"`, "b.c[2]": "[]", "b.c[3]": "", `["a b"]`: "true", "e": "null",
		"f": "-1.5e3", `b[""]`: "2", "nothing": "", "f.g": "", "b[0]": "", "a.last": "1", "b.c.d": "",
	} {
		if got := string(d.Get(path(t, at)).Raw()); got != want {
			t.Errorf("%s is %s, want %s", at, got, want)
		}
	}

	if got := d.Get(path(t, "b.c[1].d")).Text(); got != `x"y` {
		t.Errorf("a text is %q", got)
	}
}

func TestMembersAreFoundByNamesOfAnyLength(t *testing.T) {
	t.Parallel()

	var body strings.Builder

	const most = 300 // well above what the index tells lengths of

	for n := range most {
		fmt.Fprintf(&body, " , \"%s\" : %d ", strings.Repeat("n", n), n)
	}

	d := parse(t, "{"+strings.TrimPrefix(body.String(), " ,")+"}")

	for n := range most {
		if got := d.Get(document.Name(strings.Repeat("n", n))).Any(); got != n {
			t.Errorf("the value of a name of %d bytes is %v", n, got)
		}
	}

	if got := d.Get(document.Name(strings.Repeat("n", most))); got.Kind() != document.Missing {
		t.Errorf("a name that is not there has the value %s", got.Raw())
	}
}

// wide is an int that 32 bits do not hold.
func wide(n int64) int { return int(n) }

func TestNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]any{
		"0": 0, "-0": 0, "9007199254740993": wide(9007199254740993), "9223372036854775807": wide(9223372036854775807),
		"-9223372036854775808": wide(-9223372036854775808), "9223372036854775808": 9223372036854775808.0, "1.0": 1.0, "1e2": 100.0,
		"99999999999999999999": 99999999999999999999.0, "18446744073709551617": 18446744073709551617.0,
	} {
		if got := parse(t, text).Root().Any(); got != want {
			t.Errorf("%s is %T %v, want %T %v", text, got, got, want, want)
		}
	}
}

func TestADocumentIsParsedOnceForAllStages(t *testing.T) {
	t.Parallel()

	m := &pipeline.Message{Body: []byte(`{"a":1}`)}

	first, err := document.Of(m)
	if err != nil {
		t.Fatal(err)
	}

	if again, _ := document.Of(m.Clone()); again != first {
		t.Error("a copy of the message is parsed again")
	}

	m.Body = []byte(`{"a":2}`)

	if other, _ := document.Of(m); string(other.Get(document.Name("a")).Raw()) != "2" {
		t.Error("another body has the fields of the one before")
	}
}

func TestAFaultIsToldWithItsPlace(t *testing.T) {
	t.Parallel()

	for body, want := range map[string]string{
		``:                          "the body is no JSON: the end comes where a value should be at byte 0",
		`{"a":1,}`:                  "the body is no JSON: there is '}' where a name in quotes should be at byte 7",
		`{"a" 1}`:                   "the body is no JSON: there is '1' where a colon should be at byte 5",
		`[1 2]`:                     "the body is no JSON: there is '2' where a comma or ] should be at byte 3",
		`{"a":01}`:                  "the body is no JSON: there is '1' where a comma or } should be at byte 6",
		`"abc`:                      "the body is no JSON: the end comes inside a string at byte 4",
		"\"a\nb\"":                  "the body is no JSON: there is a control character 0x0a inside a string at byte 2",
		`"\x"`:                      "the body is no JSON: there is 'x' where the rest of an escape should be at byte 2",
		`"\u12g4"`:                  "the body is no JSON: there is 'g' where a hexadecimal digit should be at byte 5",
		`1.`:                        "the body is no JSON: the end comes where a digit should be at byte 2",
		`tru`:                       "the body is no JSON: there is 't' where a value should be at byte 0",
		`{} {}`:                     "the body is no JSON: there is '{' where the end should be at byte 3",
		"\xff":                      "the body is no JSON: there is 0xff where a value should be at byte 0",
		strings.Repeat("[", 1001):   "the body is no JSON: values are nested more than 1000 deep at byte 1000",
		`<html>`:                    "the body is no JSON: there is '<' where a value should be at byte 0",
		"\ufeff{}":                  "the body is no JSON: there is '\\ufeff' where a value should be at byte 0",
		`{"a":1` + "\x00" + `"b":2`: "the body is no JSON: there is '\\x00' where a comma or } should be at byte 6",
	} {
		_, err := document.Parse([]byte(body))
		if _, ok := errors.AsType[*document.SyntaxError](err); !ok || err.Error() != want {
			t.Errorf("%q fails with %v, want %s", body, err, want)
		}
	}
}

func TestPathsThatLeadNowhereAreRefused(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"a..b": `"a..b": there is no name behind a dot`, "a.": `"a.": there is no name behind a dot`,
		"a[x]": `"a[x]": [x] is no step; there are .NAME, [0] and ["NAME"]`, `a["b`: `"a[\"b": ["NAME"] is not closed`,
		"a[-1]": `"a[-1]": [-1] is no step; there are .NAME, [0] and ["NAME"]`,
	} {
		if _, err := document.ParsePath(text); err == nil || err.Error() != want {
			t.Errorf("%s fails with %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"a":[1,-2.5e+3,"x\u00e9\n",true,false,null,{}],"b":{"a":"12345678\\"}}`), "a")
	f.Add([]byte("\"1234567\x00\""), "b.a")
	f.Add([]byte(`"12345678`), "")

	f.Fuzz(func(t *testing.T, body []byte, at string) {
		d, err := document.Parse(body)
		if valid := json.Valid(body); valid != (err == nil) && !strings.Contains(err.Error(), "deep") {
			t.Fatalf("%q: %v, but encoding/json says valid=%v", body, err, valid)
		}

		p, noPath := document.ParsePath(at)
		if err != nil || noPath != nil {
			return
		}

		if again, err := document.ParsePath(p.String()); err != nil || again.String() != p.String() {
			t.Errorf("path %q is %q again: %v", p, again, err)
		}

		got, err := document.AppendAny(nil, d.Root().Any())
		if err != nil {
			return // a number out of range
		}

		var a, b any
		if json.Unmarshal(body, &a) != nil || json.Unmarshal(got, &b) != nil {
			return
		}

		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)

		if !bytes.Equal(x, y) && !bytes.Contains(x, []byte("-0")) { // which is 0 where an integer is read
			t.Errorf("%s was read as %s", x, y)
		}

		_ = d.Get(p).Any()
	})
}

func TestFloatsAreRoundedOnce(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"0", "-0", "-0.0", "0.1", "5.4", "-6.5432", "146.0123", "0.000000000000001", "99999999999999.9", "999999999999999",
		"9999999999999999", "999999999999999.9", "9007199254740993.0", "1.7976931348623157e308", "2.2250738585072014E-308", "1e400",
		"123456789012345678901234567890.5", "0.30000000000000004", "1e2", "-1.5e+3",
	} {
		got, ok := parse(t, text).Root().Float()
		want, _ := strconv.ParseFloat(text, 64)

		if !ok || math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

// FuzzFloat holds floats against the standard library's.
func FuzzFloat(f *testing.F) {
	f.Add(int64(54), uint8(1))
	f.Add(int64(-999_999_999_999_999), uint8(15))

	f.Fuzz(func(t *testing.T, digits int64, decimals uint8) {
		text := strconv.FormatInt(digits, 10)

		if at := len(text) - int(decimals%20); at > 0 && text[at-1] != '-' && at < len(text) {
			text = text[:at] + "." + text[at:]
		}

		got, _ := parse(t, text).Root().Float()
		if want, _ := strconv.ParseFloat(text, 64); math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	})
}
