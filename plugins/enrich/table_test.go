package enrich

import "testing"

func FuzzTable(f *testing.F) {
	for _, seed := range []string{"id,a\nx,1\n", "id;a\n\"x", `[{"id":"x","a":1}]`, `{"id":1}{"id":2,"b":null}`, "[", `{"id":{}}`, "\xef\xbb\xbf"} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}

	f.Fuzz(func(t *testing.T, text []byte, isJSON bool) {
		o := Options{Table: "t.csv"}
		if isJSON {
			o = Options{Table: "t.json", Column: "id"}
		}

		got, err := parse(text, o.withDefaults())
		if err != nil {
			if len(err.Error()) > 1<<12 {
				t.Errorf("%d bytes of error", len(err.Error()))
			}

			return
		}

		for key, cells := range got.rows {
			if key == "" || len(cells) > len(got.columns) {
				t.Errorf("%q has %d cells, there are %d columns", key, len(cells), len(got.columns))
			}
		}
	})
}
