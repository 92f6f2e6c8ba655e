package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// The severity classes of earthquakes, which are the tags of messages.
const (
	minor    = "minor"
	moderate = "moderate"
	major    = "major"
)

// earthquake is the type of the events that the jobs are about.
const earthquake = "earthquake"

// propType is the property that holds an event's type.
const propType = "type"

// feature is what the job reads of a GeoJSON feature of the feed.
type feature struct {
	ID         string `json:"id"`
	Properties struct {
		Mag   *float64 `json:"mag"`
		Place string   `json:"place"`
		Time  int64    `json:"time"` // in milliseconds since 1970
		TZ    int      `json:"tz"`   // in minutes east of UTC
		Type  string   `json:"type"`
	} `json:"properties"`
	Geometry struct {
		Coordinates [3]float64 `json:"coordinates"` // longitude, latitude, depth in km
	} `json:"geometry"`
}

func decodeFeature(body []byte) (feature, error) {
	var f feature

	err := json.Unmarshal(body, &f)

	switch {
	case err != nil:
		return f, fmt.Errorf("no GeoJSON feature: %w", err)
	case f.ID == "" || f.Properties.Mag == nil:
		return f, errors.New("a feature without an id or a magnitude")
	}

	return f, nil
}

// mark is how a line in a file, or a message in a topic, says which attempt at which event it came from.
type mark struct {
	ID string `json:"id"`
	// Run counts the runs of the demo over one directory, Delivery the deliveries of the event by the broker.
	Run      int `json:"run"`
	Delivery int `json:"delivery"`
}

// quake is an event on its way through the job, and a line of archive.jsonl.
type quake struct {
	mark

	Mag      float64   `json:"mag"`
	Class    string    `json:"class,omitempty"`
	Region   string    `json:"region,omitempty"`
	Place    string    `json:"place"`
	Headline string    `json:"headline,omitempty"`
	Time     time.Time `json:"time"`
	Local    string    `json:"local,omitempty"`
	TZ       int       `json:"tz"`
	Lon      float64   `json:"lon"`
	Lat      float64   `json:"lat"`
	Depth    float64   `json:"depth"`
}

// decode makes a quake of a feature. What cannot be decoded now never can be, so it is rejected.
func decode(run int) pipeline.TransformFunc {
	return func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		f, err := decodeFeature(m.Body)
		if err != nil {
			return pipeline.Reject(err)
		}

		p, at := &f.Properties, &f.Geometry.Coordinates
		q := quake{
			mark: mark{ID: m.Key, Run: run, Delivery: m.Origin.Delivery},
			Mag:  *p.Mag, Place: p.Place, Time: time.UnixMilli(p.Time).UTC(), TZ: p.TZ,
			Lon: at[0], Lat: at[1], Depth: at[2],
		}

		m.SetProp(propType, p.Type)

		return emitJSON(m, q, emit)
	}
}

// enrich adds what follows from the place, the time and the magnitude, and tags the message with its class.
func enrich(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	var q quake
	if err := json.Unmarshal(m.Body, &q); err != nil {
		return pipeline.Reject(err)
	}

	q.Region = regionOf(q.Place)
	q.Local = q.Time.In(time.FixedZone("", q.TZ*60)).Format("2006-01-02 15:04 -07:00")
	q.Class = classOf(q.Mag)
	m.Tag = q.Class

	return emitJSON(m, q, emit)
}

// headline adds a sentence to what is worth one.
func headline(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	var q quake
	if err := json.Unmarshal(m.Body, &q); err != nil {
		return pipeline.Reject(err)
	}

	q.Headline = fmt.Sprintf("%s earthquake of magnitude %.1f, %s, at %s", q.Class, q.Mag, q.Place, q.Local)

	return emitJSON(m, q, emit)
}

// alert is a message of the topic of alerts. The marks of the first job are a part of its id.
type alert struct {
	mark

	Headline string `json:"headline"`
}

// derive makes an alert of a quake. It is another message than the quake's and says so by its id.
func derive(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	var q quake
	if err := json.Unmarshal(m.Body, &q); err != nil {
		return pipeline.Reject(err)
	}

	m.ID = q.attempt()
	m.Key = m.ID

	return emitJSON(m, alert{mark: q.mark, Headline: q.Headline}, emit)
}

// attempt names a mark: "us1000chhc run 1 delivery 2".
func (m mark) attempt() string {
	return fmt.Sprintf("%s run %d delivery %d", m.ID, m.Run, m.Delivery)
}

// receive is the stage of the second job: it marks the alert with its own attempt.
func receive(run int) pipeline.TransformFunc {
	return func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		var a alert
		if err := json.Unmarshal(m.Body, &a); err != nil {
			return pipeline.Reject(err)
		}

		a.mark = mark{ID: m.Key, Run: run, Delivery: m.Origin.Delivery}

		return emitJSON(m, a, emit)
	}
}

// summary is a line of summaries.jsonl: a region in one batch.
type summary struct {
	Region   string  `json:"region"`
	Count    int     `json:"count"`
	Greatest float64 `json:"greatest"`
	Events   []mark  `json:"events"`
}

// summarise makes a message for each region of a batch.
func summarise(_ context.Context, batch []*pipeline.Message, emit pipeline.Emit) error {
	var failures pipeline.BatchError

	summaries := make(map[string]*summary)

	for i, m := range batch {
		var q quake
		if err := json.Unmarshal(m.Body, &q); err != nil {
			failures.Fail(i, pipeline.Reject(err))

			continue
		}

		s := summaries[q.Region]
		if s == nil {
			s = &summary{Region: q.Region, Greatest: q.Mag}
			summaries[q.Region] = s
		}

		s.Count++
		s.Greatest = max(s.Greatest, q.Mag)
		s.Events = append(s.Events, q.mark)
	}

	for _, region := range slices.Sorted(maps.Keys(summaries)) {
		if err := emitJSON(&pipeline.Message{Key: region}, summaries[region], emit); err != nil {
			return err
		}
	}

	return failures.Err()
}

func emitJSON(m *pipeline.Message, v any, emit pipeline.Emit) error {
	body, err := json.Marshal(v)
	if err != nil {
		return pipeline.Reject(err)
	}

	m.Body = body

	return emit(m)
}

// classOf returns the severity class of a magnitude.
func classOf(mag float64) string {
	switch {
	case mag >= 5:
		return major
	case mag >= 3:
		return moderate
	default:
		return minor
	}
}

// regionOf returns the region in a place such as "4km W of Castaic, CA": what stands behind the last comma, or else
// behind the last "of", or else all of it. The feed abbreviates some regions in a part of its events.
func regionOf(place string) string {
	region := place
	if i := strings.LastIndex(place, ", "); i >= 0 {
		region = place[i+len(", "):]
	} else if i := strings.LastIndex(place, " of "); i >= 0 {
		region = place[i+len(" of "):]
	}

	switch region {
	case "CA":
		return "California"
	case "NV":
		return "Nevada"
	case "MX":
		return "Mexico"
	default:
		return region
	}
}
