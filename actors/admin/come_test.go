package admin_test

import (
	"context"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
)

// comeHandedOn makes a lane hold what it has gathered of one message while it gathers of the next one of the same turn.
func comeHandedOn(w *world, open <-chan struct{}) {
	gather := func(_ context.Context, batch []*pipeline.Message, emit pipeline.Emit) error {
		if batch[0].ID != "m0" {
			<-open
		}

		return emit(batch[0])
	}

	w.publish(1)

	if err := w.Publish(w.t.Context(), "in", []*pipeline.Message{{ID: "m1", Body: make([]byte, 1000)}}); err != nil {
		w.t.Fatal(err)
	}

	w.run(w, job(pipeline.Channel{
		Name: "work", Routes: []pipeline.Route{{To: "end"}},
		Batch: pipeline.Batch{Messages: 10, Bytes: 500, Every: time.Hour}, // m0 alone is not enough, and m1 does not fit beside it
		Gather: &pipeline.GatherStage{Name: "gather", New: func() (pipeline.BatchTransform, error) {
			return pipeline.BatchTransformFunc(gather), nil
		}},
	}, pipeline.Channel{Name: "end"}), actors.Options{})
	pass(20 * time.Second)
}

// comeBehindKey makes a message of one queue wait behind one of the other.
func comeBehindKey(w *world) {
	rekey := pipeline.Channel{
		Name: "rekey", Order: pipeline.OrderByQueue, Routes: []pipeline.Route{{To: "work"}},
		Stages: []pipeline.Stage{pipeline.Func("rekey", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			m.Key = "same"

			return emit(m)
		})},
	}
	work := pipeline.Channel{
		Name: "work", Order: pipeline.OrderByKey,
		Stages: []pipeline.Stage{failing(named("m0"), pipeline.RetryAfter(errBroken, time.Hour))},
	}

	w.run(w, job(rekey, work), actors.Options{})
	synctest.Wait()

	for _, id := range []string{"m0", "m1"} {
		if err := w.Publish(w.t.Context(), "in", []*pipeline.Message{{ID: id}}); err != nil {
			w.t.Fatal(err)
		}

		pass(10 * time.Second)
	}
}
