package plugins_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

func TestAFieldIsWhatItsNameSays(t *testing.T) {
	t.Parallel()

	m := &pipeline.Message{
		ID: "i", Key: "k", Tag: "t", Topic: "q", Body: []byte("b"), Props: map[string]string{"a.b": "p"},
	}

	for name, want := range map[string]string{
		"id": "i", "key": "k", "tag": "t", "topic": "q", "text": "b", "props.a.b": "p", "props.none": "",
	} {
		f, err := plugins.ParseField(name)
		if err != nil {
			t.Fatal(err)
		}

		if got := f.Of(m); got != want || f.String() != name {
			t.Errorf("%s (%s) is %q, want %q", name, f, got, want)
		}
	}

	if zero := (plugins.Field{}); zero.Of(m) != "" || zero.String() != "" || !zero.IsZero() {
		t.Errorf("the zero field is %s, %q", zero, zero.Of(m))
	}
}

func TestAWrongNameGetsAProposal(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{
		"kye": `"kye" is no field of a message; did you mean "key"?`, "props.": `there are: id, key`, "": "there are: id, key",
		"body.mag": "is no field",
	} {
		f := plugins.Field{}

		if err := f.UnmarshalText([]byte(name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
