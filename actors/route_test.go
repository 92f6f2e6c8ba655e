package actors_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// A condition that fails is the failure of its message, at every route and whatever the last stage makes of it.
func TestAConditionOfARouteThatFailsIsItsMessagesFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		all, some := &shelf{}, &shelf{}

		tries := 0
		condition := func(m *pipeline.Message) (bool, error) {
			switch m.ID {
			case "m1":
				return false, pipeline.Reject(errBroken)
			case "m2":
				tries++
				if tries == 1 {
					return false, errors.New("not now")
				}
			}

			return m.ID != "m0", nil
		}
		deaf := pipeline.Func("deaf", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			_ = emit(m)

			return nil
		})

		g.publish(0, 4)
		g.run(job(
			pipeline.Channel{Name: "work", Stages: []pipeline.Stage{deaf}, Routes: []pipeline.Route{
				{To: "all"}, {To: "some", Condition: condition},
			}},
			pipeline.Channel{Name: "all", Sink: all}, pipeline.Channel{Name: "some", Sink: some},
		), actors.Options{})
		pass(time.Minute)

		if dead := g.dead(); !slices.Equal(dead, []string{"m1"}) {
			t.Errorf("dead letters: %v, want m1", dead)
		}

		if cause := g.Calls(consumertest.OpDeadLetter)[0].Cause; cause.Stage != "work/route" || cause.Error != errBroken.Error() {
			t.Errorf("the dead letter says %+v", cause)
		}

		if got := some.all(); !slices.Equal(got, []string{"m3", "m2"}) {
			t.Errorf("some got %v, want m3 and then m2, which failed once", got)
		}

		if got := all.all(); !slices.Equal(got, []string{"m0", "m3", "m2"}) {
			t.Errorf("all got %v, want nothing of a message that failed", got)
		}

		g.finished()
	})
}
