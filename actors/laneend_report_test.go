package actors_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
)

// TestBatchIsReportedBeforeTheNextOneHangs has a sink hang in the third batch of what one turn has brought.
func TestBatchIsReportedBeforeTheNextOneHangs(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		batch int
		takes time.Duration
	}{"large batches": {20, 0}, "small batches of a slow sink": {5, 2 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g, calls, released := newGround(t, 1), 0, make(chan struct{})
				sink := sinkFunc(func(context.Context, []*pipeline.Message) error {
					calls++

					if calls == 3 {
						<-released
					}

					<-time.After(c.takes)

					return nil
				})

				g.publish(0, 4*c.batch)

				g.run(job(pipeline.Channel{Name: "work", Batch: pipeline.Batch{Messages: c.batch}, Sink: sink}), actors.Options{})
				pass(10 * time.Second)

				if got, want := g.committed(0), pipeline.Offset(2*c.batch); got != want {
					t.Errorf("%d are committed while the third batch hangs, want %d", got, want)
				}

				close(released)
				pass(10 * time.Second)
				g.finished()
			})
		})
	}
}
