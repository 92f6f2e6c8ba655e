package pipeline_test

import (
	"errors"
	"io"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

func TestFuncStageRunsTheFunction(t *testing.T) {
	t.Parallel()

	stage := pipeline.Func("pass", pass)

	transform, err := stage.New()
	if err != nil || stage.Name != "pass" {
		t.Fatalf("stage %q, error %v", stage.Name, err)
	}

	m := &pipeline.Message{ID: "7"}

	err = transform.Transform(t.Context(), m, func(out *pipeline.Message) error {
		if out != m {
			t.Errorf("emitted %+v", out)
		}

		return io.EOF
	})
	if !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want emit's", err)
	}
}

func TestFilterPassesWhatItPicks(t *testing.T) {
	t.Parallel()

	transform, err := pipeline.Filter("major", pipeline.Tagged("major")).New()
	if err != nil {
		t.Fatal(err)
	}

	var passed []string

	emit := func(m *pipeline.Message) error {
		passed = append(passed, m.Tag)

		return io.EOF
	}

	if err := transform.Transform(t.Context(), &pipeline.Message{Tag: "minor"}, emit); err != nil {
		t.Errorf("filtered: error %v", err)
	}

	if err := transform.Transform(t.Context(), &pipeline.Message{Tag: "major"}, emit); !errors.Is(err, io.EOF) {
		t.Errorf("passed: error %v, want emit's", err)
	}

	if len(passed) != 1 || passed[0] != "major" {
		t.Errorf("passed %v, want major only", passed)
	}
}
