package pipeline

import "testing"

func TestSuggestionIsWhatWasMeantOrAllThatThereIs(t *testing.T) {
	t.Parallel()

	for want, known := range map[string][]string{
		`did you mean "alerts"?`:   {"archive", "alerts"},
		"there are: archive, json": {"archive", "json"},
		"there are none":           nil,
	} {
		if got := Suggest("alrets", known); got != want {
			t.Errorf("among %q: %s; want %s", known, got, want)
		}
	}
}

func TestNearestIsASlipOfThePenAway(t *testing.T) {
	t.Parallel()

	known := []string{"classify", "alerts", "archive", "json", "key"}

	for name, want := range map[string]string{
		"archiv": "archive", "arhcive": "archive", "Archive": "archive", "archives": "archive", "jsn": "json",
		"alert": "alerts", "clasify": "classify", "kye": "key", "xml": "", "": "", "alarms": "alerts", "enrich": "", "arch": "",
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

func TestEditsAreCounted(t *testing.T) {
	t.Parallel()

	for _, pair := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "abc", 0},
		{"abc", "abd", 1},
		{"abc", "ab", 1},
		{"abc", "xabc", 1},
		{"abc", "acb", 1},
		{"abcdef", "badcfe", 3},
		{"ca", "abc", 3},
		{"kitten", "sitting", 3},
	} {
		if got, back := editDistance(pair.a, pair.b, 9), editDistance(pair.b, pair.a, 9); got != pair.want || back != pair.want {
			t.Errorf("%q and %q are %d and %d edits apart, want %d", pair.a, pair.b, got, back, pair.want)
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
