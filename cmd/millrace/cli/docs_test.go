package cli_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/standard"
)

// update rewrites the documents that are written by the command: go test ./cmd/millrace/cli -update.
var update = flag.Bool("update", false, "rewrite docs/cli.md and docs/jobfile.md") //nolint:gochecknoglobals // a flag of the test

// standardOnly runs the command as it is built by cmd/millrace.
func standardOnly(t *testing.T, args ...string) []byte {
	t.Helper()

	var out, errs bytes.Buffer

	c := cli.Command{
		Register: []func(*plugins.Registry) error{standard.Register}, In: strings.NewReader(""), Out: &out, Err: &errs,
	}
	if code := c.Run(t.Context(), args...); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, errs.String())
	}

	return out.Bytes()
}

func TestTheDocumentsAreWhatTheCommandWrites(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"cli", "jobfile"} {
		file := "../../../docs/" + name + ".md"
		want := standardOnly(t, "docs", name)

		if *update {
			if err := os.WriteFile(file, want, 0o600); err != nil {
				t.Fatal(err)
			}
		}

		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		if !bytes.Equal(got, want) {
			t.Errorf("docs/%s.md is stale; go test ./cmd/millrace/cli -run Documents -update writes it anew", name)
		}
	}
}

func TestTheJobOfTheDocumentsHasNoMistakes(t *testing.T) {
	t.Parallel()

	var r plugins.Registry
	if err := standard.Register(&r); err != nil {
		t.Fatal(err)
	}

	src := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(standardOnly(t, "docs", "jobfile"))
	if src == nil {
		t.Fatal("there is none")
	}

	if _, err := jobfile.Parse("docs/jobfile.md", src[1], &r, jobfile.Variables{}); err != nil {
		t.Error(err)
	}
}

func TestTheSchemaIsJSON(t *testing.T) {
	t.Parallel()

	var schema struct {
		Properties map[string]any `json:"properties"`
	}

	if err := json.Unmarshal(standardOnly(t, "schema"), &schema); err != nil || schema.Properties["channels"] == nil {
		t.Errorf("%v, %v", schema, err)
	}
}
