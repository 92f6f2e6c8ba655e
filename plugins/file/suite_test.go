package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
)

func TestTheFileSinkIsASink(t *testing.T) {
	t.Parallel()

	pipelinetest.TestSink(t, pipelinetest.Harness{
		New: func(tb testing.TB) (pipeline.Sink, func() []string) {
			tb.Helper()

			path := filepath.Join(tb.TempDir(), "lines.jsonl")

			sink, err := New(Options{Path: path}, nil)
			if err != nil {
				tb.Fatal(err)
			}

			return sink, func() []string {
				text, err := os.ReadFile(path)
				if err != nil {
					tb.Fatal(err)
				}

				return strings.Fields(string(text))
			}
		},
		Poison: func(m *pipeline.Message) { m.Body = append(m.Body, '\n') },
	})
}
