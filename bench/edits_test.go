package main

import (
	"strconv"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/document"
)

// BenchmarkDocument is the work of json.yaml on one event: check it, read two fields, make five changes, read one more.
func BenchmarkDocument(b *testing.B) {
	h, err := newHand()
	if err != nil {
		b.Fatal(err)
	}

	events, t := newEvents(), new(tally)

	b.ReportAllocs()

	for i := 0; b.Loop(); i++ {
		if err := h.work(&pipeline.Message{Body: events[i%len(events)]}, t); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGjson is the same with gjson and sjson.
func BenchmarkGjson(b *testing.B) {
	events, t := newEvents(), new(tally)

	b.ReportAllocs()

	for i := 0; b.Loop(); i++ {
		if err := gjsonWork(events[i%len(events)], t); err != nil {
			b.Fatal(err)
		}
	}
}

func TestGjsonDoesTheSame(t *testing.T) {
	t.Parallel()

	h, err := newHand()
	if err != nil {
		t.Fatal(err)
	}

	ours, others := new(tally), new(tally)

	for _, event := range newEvents() {
		if err := h.work(&pipeline.Message{Body: event}, ours); err != nil {
			t.Fatal(err)
		}

		if err := gjsonWork(event, others); err != nil {
			t.Fatal(err)
		}
	}

	if ours.String() != others.String() {
		t.Errorf("%s arrived, and by gjson %s", ours, others)
	}
}

func gjsonWork(body []byte, t *tally) error {
	if !gjson.ValidBytes(body) {
		return strconv.ErrSyntax
	}

	mag := gjson.GetBytes(body, "mag")
	if mag.Float() < 2 {
		return nil
	}

	km := gjson.GetBytes(body, "cdi").Float() * 1.609

	severity := "minor"
	if mag.Float() >= 6 {
		severity = "major"
	} else if mag.Float() >= 4 {
		severity = "moderate"
	}

	var err error

	change := func(next []byte, failed error) {
		if err == nil {
			body, err = next, failed
		}
	}

	change(sjson.SetBytes(body, "severity", severity))
	change(sjson.SetBytes(body, "source", "feed"))
	change(sjson.SetBytes(body, "km", km))
	change(sjson.SetRawBytes(body, "magnitude", []byte(mag.Raw)))
	change(sjson.DeleteBytes(body, "mag"))
	change(sjson.DeleteBytes(body, "url"))

	if gjson.GetBytes(body, "severity").Str == "major" {
		t.major.Add(1)
	} else {
		t.rest.Add(1)
	}

	return err
}

func lookups() []string { return []string{"mag", "place", "geometry.coordinates"} }

// BenchmarkDocumentLookups reads three fields of an event that is checked and indexed for it.
func BenchmarkDocumentLookups(b *testing.B) {
	events, paths := newEvents(), make([]document.Path, len(lookups()))

	for i, text := range lookups() {
		p, err := document.ParsePath(text)
		if err != nil {
			b.Fatal(err)
		}

		paths[i] = p
	}

	b.ReportAllocs()

	for i := 0; b.Loop(); i++ {
		d, err := document.Parse(events[i%len(events)])
		if err != nil {
			b.Fatal(err)
		}

		for _, p := range paths {
			if d.Get(p).Kind() == document.Missing {
				b.Fatal("nothing is there")
			}
		}
	}
}

// BenchmarkGjsonLookups is the same with gjson, which checks and searches each time.
func BenchmarkGjsonLookups(b *testing.B) {
	events, paths := newEvents(), lookups()

	b.ReportAllocs()

	for i := 0; b.Loop(); i++ {
		event := events[i%len(events)]
		if !gjson.ValidBytes(event) {
			b.Fatal("no JSON")
		}

		for _, path := range paths {
			if !gjson.GetBytes(event, path).Exists() {
				b.Fatal("nothing is there")
			}
		}
	}
}
