package plugins_test

import (
	"context"
	"errors"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// counter adds one to what all lanes of its stage share.
type counter struct{ total *int }

func (c counter) Transform(context.Context, *pipeline.Message, pipeline.Emit) error {
	*c.total++

	return nil
}

func TestTheLanesOfAStageShareWhatWasPreparedForIt(t *testing.T) {
	t.Parallel()

	var r plugins.Registry

	prepared := 0

	err := plugins.AddStage(&r, "count", plugins.Doc{}, func(plugins.Env, struct{}) (func() (pipeline.Transform, error), error) {
		prepared++

		total := new(int)

		return func() (pipeline.Transform, error) { return counter{total}, nil }, nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := r.Check(plugins.Transform, "count", nil); err != nil || prepared != 0 {
		t.Fatalf("a check prepares %d stages, %v", prepared, err)
	}

	one, other := lanes(t, &r), lanes(t, &r)
	if prepared != 2 {
		t.Errorf("two stages were prepared %d times", prepared)
	}

	for _, lane := range []pipeline.Transform{one[0], one[1], other[0]} {
		if err := lane.Transform(t.Context(), &pipeline.Message{}, nil); err != nil {
			t.Fatal(err)
		}
	}

	if got := *one[1].(counter).total; got != 2 {
		t.Errorf("the lanes of the first stage counted %d together, want 2", got)
	}

	if got := *other[1].(counter).total; got != 1 {
		t.Errorf("the lanes of the second stage counted %d together, want 1", got)
	}
}

func lanes(t *testing.T, r *plugins.Registry) [2]pipeline.Transform {
	t.Helper()

	stage, err := r.Stage("s", "count", nil, plugins.Env{})
	if err != nil {
		t.Fatal(err)
	}

	var all [2]pipeline.Transform
	for i := range all {
		if all[i], err = stage.New(); err != nil {
			t.Fatal(err)
		}
	}

	return all
}

func TestAStageThatCannotBePreparedSaysWhichPluginItIs(t *testing.T) {
	t.Parallel()

	var r plugins.Registry

	err := plugins.AddStage(&r, "count", plugins.Doc{}, func(plugins.Env, struct{}) (func() (pipeline.Transform, error), error) {
		return nil, errors.New("no abacus")
	})
	if err != nil {
		t.Fatal(err)
	}

	stage, err := r.Stage("s", "count", nil, plugins.Env{})
	if err != nil {
		t.Fatal(err)
	}

	if _, err := stage.New(); err == nil || err.Error() != `plugins: transform "count": no abacus` {
		t.Errorf("the error is %v", err)
	}
}
