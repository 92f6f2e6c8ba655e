package main

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
)

// fused returns stages as one function that returns what comes out of the last one.
func fused(t *testing.T, stages ...pipeline.TransformFunc) func(m *pipeline.Message) ([]*pipeline.Message, error) {
	t.Helper()

	return func(m *pipeline.Message) ([]*pipeline.Message, error) {
		var out []*pipeline.Message

		emit := func(m *pipeline.Message) error {
			out = append(out, m)

			return nil
		}

		for _, stage := range slices.Backward(stages) {
			next := emit
			emit = func(m *pipeline.Message) error { return stage(t.Context(), m, next) }
		}

		err := emit(m)

		return out, err
	}
}

func delivered(e event, delivery int) *pipeline.Message {
	m := e.message()
	m.Origin.Delivery = delivery

	return m
}

func eventOf(t *testing.T, id string) event {
	t.Helper()

	for _, e := range feedOf(t, 1) {
		if e.id == id {
			return e
		}
	}

	t.Fatalf("no event %s", id)

	return event{}
}

func TestAnEventIsDecodedAndEnriched(t *testing.T) {
	t.Parallel()

	out, err := fused(t, decode(7), enrich, headline)(delivered(eventOf(t, "ci37868143"), 2))
	if err != nil || len(out) != 1 {
		t.Fatalf("%d messages, %v", len(out), err)
	}

	m := out[0]

	var got quake
	if err := json.Unmarshal(m.Body, &got); err != nil {
		t.Fatal(err)
	}

	want := quake{
		mark: mark{ID: "ci37868143", Run: 7, Delivery: 2},
		Mag:  2, Class: minor, Region: "California", Place: "4km W of Castaic, CA",
		Headline: "minor earthquake of magnitude 2.0, 4km W of Castaic, CA, at 2018-02-06 17:26 -08:00",
		Time:     time.Date(2018, 2, 7, 1, 26, 13, 840e6, time.UTC), Local: "2018-02-06 17:26 -08:00", TZ: -480,
		Lon: -118.6671667, Lat: 34.4945, Depth: 26.49,
	}

	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}

	if m.Tag != minor || m.Props[propType] != earthquake || m.Key != "ci37868143" {
		t.Errorf("the message is %+v", m)
	}
}

func TestEveryEventOfTheFeedGetsThroughTheStages(t *testing.T) {
	t.Parallel()

	run := fused(t, decode(1), enrich)

	for _, e := range feedOf(t, 1) {
		out, err := run(delivered(e, 1))
		if err != nil || len(out) != 1 {
			t.Fatalf("%s: %d messages, %v", e.id, len(out), err)
		}

		if quake := out[0].Props[propType] == earthquake; quake != (e.class != "") || quake && out[0].Tag != e.class {
			t.Errorf("%s is %s and %q", e.id, out[0].Props[propType], out[0].Tag)
		}
	}
}

func TestEveryStageIsATransform(t *testing.T) {
	t.Parallel()

	marked := `"id":"message-0","run":1,"delivery":1`
	shape := func(m *pipeline.Message, change func(*pipeline.Message)) *pipeline.Message {
		change(m)

		return m
	}
	keyed := func(body string) *pipeline.Message {
		return shape(pipelinetest.Message(body), func(m *pipeline.Message) { m.Key = "message-0" })
	}

	for name, c := range map[string]struct {
		stage    pipeline.TransformFunc
		in, want *pipeline.Message
		bad      []string
	}{
		"decode": {
			stage: decode(1),
			in: keyed(`{"id":"x","properties":{"mag":5,"place":"Banda Sea","time":0,"tz":60,"type":"explosion"},` +
				`"geometry":{"coordinates":[1,2,3]}}`),
			want: shape(keyed(`{`+marked+`,"mag":5,"place":"Banda Sea","time":"1970-01-01T00:00:00Z","tz":60,`+
				`"lon":1,"lat":2,"depth":3}`), func(m *pipeline.Message) { m.SetProp(propType, "explosion") }),
			bad: []string{"{", `{"properties":{"mag":1}}`, `{"id":"x","properties":{"mag":null}}`},
		},
		"enrich": {
			stage: enrich,
			in:    keyed(`{` + marked + `,"mag":5,"place":"Banda Sea","time":"1970-01-01T00:00:00Z","tz":60}`),
			want: shape(keyed(`{`+marked+`,"mag":5,"class":"major","region":"Banda Sea","place":"Banda Sea",`+
				`"time":"1970-01-01T00:00:00Z","local":"1970-01-01 01:00 +01:00","tz":60,"lon":0,"lat":0,"depth":0}`),
				func(m *pipeline.Message) { m.Tag = major }),
			bad: []string{"{"},
		},
		"headline": {
			stage: headline,
			in:    keyed(`{` + marked + `,"mag":5,"class":"major","place":"Banda Sea","time":"1970-01-01T00:00:00Z","local":"noon"}`),
			want: keyed(`{` + marked + `,"mag":5,"class":"major","place":"Banda Sea",` +
				`"headline":"major earthquake of magnitude 5.0, Banda Sea, at noon",` +
				`"time":"1970-01-01T00:00:00Z","local":"noon","tz":0,"lon":0,"lat":0,"depth":0}`),
			bad: []string{"{"},
		},
		"derive": {
			stage: derive,
			in:    keyed(`{` + marked + `,"headline":"big"}`),
			want: shape(keyed(`{`+marked+`,"headline":"big"}`), func(m *pipeline.Message) {
				m.ID = "message-0 run 1 delivery 1"
				m.Key = m.ID
			}),
			bad: []string{"{"},
		},
		"receive": {
			stage: receive(2),
			in:    keyed(`{` + marked + `,"headline":"big"}`),
			want:  keyed(`{"id":"message-0","run":2,"delivery":1,"headline":"big"}`),
			bad:   []string{"{"},
		},
		"trouble": {
			stage: (&trouble{slow: true}).transform,
			in:    keyed("anything"), want: keyed("anything"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			cases := []pipelinetest.Case{{Name: "good", In: c.in, Want: []*pipeline.Message{c.want}}}
			for _, body := range c.bad {
				cases = append(cases, pipelinetest.Case{Name: body, In: keyed(body), Fails: pipeline.IsRejected})
			}

			pipelinetest.TestTransform(t, func() (pipeline.Transform, error) { return c.stage, nil }, cases...)
		})
	}
}

func TestRegionsAreWhatAPlaceEndsWith(t *testing.T) {
	t.Parallel()

	for place, want := range map[string]string{
		"4km W of Castaic, CA":                                  "California",
		"2km E of Reno, Nevada":                                 "Nevada",
		"20km S of Laughlin, NV":                                "Nevada",
		"18km NNE of Hualian, Taiwan":                           "Taiwan",
		"Gulf of Alaska":                                        "Alaska",
		"Off the east coast of the North Island of New Zealand": "New Zealand",
		"Reykjanes Ridge":                                       "Reykjanes Ridge",
		"":                                                      "",
	} {
		if got := regionOf(place); got != want {
			t.Errorf("%q is in %q, want %q", place, got, want)
		}
	}
}

func TestClassesBeginAtTheirMagnitudes(t *testing.T) {
	t.Parallel()

	for mag, want := range map[float64]string{
		-0.8: minor, 2.99: minor, 3: moderate, 4.99: moderate, 5: major, 6.4: major,
	} {
		if got := classOf(mag); got != want {
			t.Errorf("%g is %s, want %s", mag, got, want)
		}
	}
}

func TestAnAlertIsAnotherMessageThanItsQuake(t *testing.T) {
	t.Parallel()

	e := feedOf(t, 1)[0]

	out, err := fused(t, decode(3), enrich, headline, derive)(delivered(e, 2))
	if err != nil || len(out) != 1 {
		t.Fatalf("%d messages, %v", len(out), err)
	}

	first := out[0]
	if want := e.id + " run 3 delivery 2"; first.ID != want || first.Key != want {
		t.Errorf("the alert's id is %q, its key %q", first.ID, first.Key)
	}

	first.Origin.Delivery = 4

	out, err = fused(t, receive(5))(first)
	if err != nil || len(out) != 1 {
		t.Fatalf("%d messages, %v", len(out), err)
	}

	var got alert
	if err := json.Unmarshal(out[0].Body, &got); err != nil {
		t.Fatal(err)
	}

	if (got.mark != mark{ID: e.id + " run 3 delivery 2", Run: 5, Delivery: 4}) || !strings.HasPrefix(got.Headline, minor) {
		t.Errorf("the line is %+v", got)
	}
}

func TestABatchIsSummarisedByRegion(t *testing.T) {
	t.Parallel()

	batch := make([]*pipeline.Message, 0, 4)
	for i, q := range []quake{
		{Region: "Taiwan", Mag: 5}, {Region: "Alaska", Mag: -1}, {Region: "Taiwan", Mag: 6.4}, {Region: "Alaska", Mag: -0.5},
	} {
		q.mark = mark{ID: string(rune('a' + i)), Run: 1, Delivery: 1}
		body, _ := json.Marshal(q)
		batch = append(batch, &pipeline.Message{Body: body})
	}

	batch = append(batch, &pipeline.Message{Body: []byte("{")})

	var got []summary

	err := summarise(t.Context(), batch, func(m *pipeline.Message) error {
		var s summary
		got = append(got, s)

		return json.Unmarshal(m.Body, &got[len(got)-1])
	})

	want := []summary{
		{Region: "Alaska", Count: 2, Greatest: -0.5, Events: []mark{{"b", 1, 1}, {"d", 1, 1}}},
		{Region: "Taiwan", Count: 2, Greatest: 6.4, Events: []mark{{"a", 1, 1}, {"c", 1, 1}}},
	}

	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}

	failures, ok := err.(*pipeline.BatchError) //nolint:errorlint // it is returned as it is
	if !ok || len(failures.Failed) != 1 || !pipeline.IsRejected(failures.Failed[4]) {
		t.Errorf("the error is %v, want one that rejects the last message", err)
	}
}

func TestBothJobsCompile(t *testing.T) {
	t.Parallel()

	sink := pipeline.SinkFunc(func(context.Context, []*pipeline.Message) error { return nil })
	p := parts{
		trouble: pickTrouble(options{}, nil).stage(),
		archive: sink, summaries: sink, alerts: sink, alertsTopic: sink,
		retry: retryOptions{attempts: 3, delay: time.Second, timeout: time.Second},
	}

	for _, job := range []pipeline.Job{quakesJob(p), alertsJob(p)} {
		if _, err := pipeline.Compile(job); err != nil {
			t.Error(err)
		}
	}
}
