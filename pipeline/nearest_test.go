package pipeline

import "testing"

func TestNearestIsASlipOfThePenAway(t *testing.T) {
	t.Parallel()

	known := []string{"classify", "alerts", "archive", "json"}

	for name, want := range map[string]string{
		"archiv": "archive", "arhcive": "archive", "Archive": "archive", "archives": "archive", "jsn": "json",
		"alert": "alerts", "clasify": "classify", "xml": "", "": "", "alarms": "alerts", "enrich": "", "arch": "",
	} {
		got := ""
		if i := nearest(name, known); i >= 0 {
			got = known[i]
		}

		if got != want {
			t.Errorf("%q is taken for %q, want %q", name, got, want)
		}
	}
}

func TestNearestPrefersTheFewestEditsThenTheFirst(t *testing.T) {
	t.Parallel()

	known := []string{"lane-10", "lane-01", "lane-11", "lane-1"}

	for name, want := range map[string]int{"lane-1": 3, "lane-111": 2, "lane-2": 3, "lane-12": 0} {
		if got := nearest(name, known); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}
