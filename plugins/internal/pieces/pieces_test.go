package pieces_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/millrace/millrace/plugins/internal/pieces"
)

func TestLinesAreCutAtLineBreaks(t *testing.T) {
	t.Parallel()

	for body, want := range map[string][]string{
		"":                     nil,
		"\n\r\n":               nil,
		"a":                    {"a"},
		"a\nb\n":               {"a", "b"},
		"a\r\n\r\n b \nc\rd\n": {"a", " b ", "c\rd"},
	} {
		if got := texts(slices.Collect(pieces.Lines([]byte(body)))); !slices.Equal(got, want) {
			t.Errorf("%q has the lines %q, want %q", body, got, want)
		}
	}

	for line := range pieces.Lines([]byte("a\nb\n")) {
		_ = append(line, 'x')

		break
	}
}

func TestAPieceCannotGrowIntoTheNext(t *testing.T) {
	t.Parallel()

	body := []byte("[1,2]")

	all, err := pieces.Elements(body)
	if err != nil {
		t.Fatal(err)
	}

	for piece := range all {
		_ = append(piece, "xxx"...)
	}

	if string(body) != "[1,2]" {
		t.Errorf("appending to a piece wrote into the body: %s", body)
	}
}

func FuzzElements(f *testing.F) {
	for _, seed := range []string{
		"[]", " [ ] ", "[1]", `[1, "a,b]", {"c":[1,2],"d":"\"]"}, [[],[{}]] ,null]`, `["\\",",\\\""]`, "[1,]", "[", "{}", "", "[1]x", "[]\v",
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, body []byte) {
		var want []json.RawMessage

		wrong := json.Unmarshal(body, &want) != nil || want == nil // null is no array

		all, err := pieces.Elements(body)
		if (err != nil) != wrong {
			t.Fatalf("the error is %v, of the standard library's reader: %t", err, wrong)
		}

		if err != nil {
			return
		}

		got := slices.Collect(all)
		if len(got) != len(want) {
			t.Fatalf("%d elements, want %d", len(got), len(want))
		}

		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("element %d is %s, want %s", i, got[i], want[i])
			}
		}
	})
}

func texts(all [][]byte) []string {
	var s []string
	for _, b := range all {
		s = append(s, string(b))
	}

	return s
}
