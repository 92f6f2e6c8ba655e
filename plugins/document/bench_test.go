package document_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/plugins/document"
)

// event is about 1 KiB with fields as events have them.
func event() []byte {
	return []byte(`{"id":"us7000abcd","type":"earthquake","mag":5.4,"magType":"mww","place":"34 km SSE of Kainantu, Papua New Guinea",` +
		`"time":1767225600123,"updated":1767229200456,"tz":null,"url":"https://example.org/events/us7000abcd","felt":12,"cdi":4.3,` +
		`"mmi":5.125,"alert":"green","status":"reviewed","tsunami":0,"sig":452,"net":"us","code":"7000abcd",` +
		`"geometry":{"type":"Point","coordinates":[146.0123,-6.5432,35.5]},` +
		`"detail":"` + strings.Repeat("lorem ipsum dolor ", 28) + `","region":"Eastern Highlands"}`)
}

func BenchmarkParse(b *testing.B) {
	body := event()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()

	for b.Loop() {
		if _, err := document.Parse(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	d := parse(b, string(event()))
	p := path(b, "region")

	for b.Loop() {
		if d.Get(p).Kind() != document.Text {
			b.Fatal("no region")
		}
	}
}

func BenchmarkApply(b *testing.B) {
	d := parse(b, string(event()))
	p := plan(b, document.Changes{
		Set: paths(b, "severity", "source", "seen"), Remove: paths(b, "detail"),
		Move: map[string]document.Path{"mag": path(b, "magnitude")},
	})
	v := values(3)

	b.ReportAllocs()

	for b.Loop() {
		if _, err := p.Apply(d, v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFloat(b *testing.B) {
	v := parse(b, "146.0123").Root()

	for b.Loop() {
		if f, ok := v.Float(); !ok || f < 146 {
			b.Fatal("no number")
		}
	}
}
