package main

import (
	"encoding/json"
	"maps"
	"testing"
)

// feedOf returns the feed n times.
func feedOf(t *testing.T, n int) []event {
	t.Helper()

	feed, err := readFeed(n)
	if err != nil {
		t.Fatal(err)
	}

	return feed
}

func TestTheFeedIsComplete(t *testing.T) {
	t.Parallel()

	classes, ids := make(map[string]int), make(set)

	for _, e := range feedOf(t, 1) {
		classes[e.class]++
		ids[e.id] = true

		if !json.Valid(e.body) {
			t.Errorf("%s is no JSON", e.id)
		}
	}

	// Counted in the file by other means.
	want := map[string]int{"": 28, minor: 1462, moderate: 178, major: 39}
	if !maps.Equal(classes, want) {
		t.Errorf("events by class are %v, want %v", classes, want)
	}

	if len(ids) != 1707 {
		t.Errorf("%d different ids, want 1707", len(ids))
	}
}

func TestARepeatedFeedHasIdsOfItsOwn(t *testing.T) {
	t.Parallel()

	feed, ids := feedOf(t, 3), make(set)
	for _, e := range feed {
		ids[e.id] = true

		if m := e.message(); m.Key != e.id || m.ID != e.id {
			t.Fatalf("the message of %s has id %q and key %q", e.id, m.ID, m.Key)
		}
	}

	if len(feed) != 3*1707 || len(ids) != len(feed) {
		t.Errorf("%d events with %d ids, want %d of both", len(feed), len(ids), 3*1707)
	}

	if last := feed[len(feed)-1]; last.id != feed[1706].id+"~3" || last.class != feed[1706].class {
		t.Errorf("the last event is %s (%s)", last.id, last.class)
	}
}
