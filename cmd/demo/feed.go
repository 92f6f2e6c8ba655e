package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/millrace/millrace/pipeline"
)

// feedFile is described in README.md.
//
//go:embed usgs-all-week-2018-02-07.geojson.gz
var feedFile []byte

// event is one event of the feed, and what the audit expects of it.
type event struct {
	id   string
	body []byte // a GeoJSON feature
	// class is the severity of an earthquake, empty for everything else in the feed.
	class string
}

// readFeed returns the events of the embedded feed in its order, repeat times; repeats have ids of their own.
func readFeed(repeat int) ([]event, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(feedFile))
	if err != nil {
		return nil, fmt.Errorf("demo: the embedded feed: %w", err)
	}

	var feed struct {
		Features []json.RawMessage `json:"features"`
	}
	if err := json.NewDecoder(unzipped).Decode(&feed); err != nil {
		return nil, fmt.Errorf("demo: the embedded feed: %w", err)
	}

	events := make([]event, 0, repeat*len(feed.Features))

	for _, body := range feed.Features {
		f, err := decodeFeature(body)
		if err != nil {
			return nil, fmt.Errorf("demo: the embedded feed: %w", err)
		}

		e := event{id: f.ID, body: body}
		if f.Properties.Type == earthquake {
			e.class = classOf(*f.Properties.Mag)
		}

		events = append(events, e)
	}

	for n := 2; n <= repeat; n++ {
		for _, e := range events[:len(feed.Features)] {
			e.id += "~" + strconv.Itoa(n)
			events = append(events, e)
		}
	}

	return events, nil
}

// message returns the event as it is published. The key, which the broker keeps over every redelivery, is the id.
func (e *event) message() *pipeline.Message {
	return &pipeline.Message{ID: e.id, Key: e.id, Body: e.body}
}
