package actors_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func TestDeadLetterSaysWhatItsAttemptsWere(t *testing.T) {
	t.Parallel()

	for name, order := range map[string]pipeline.Order{
		"sent back to the broker": pipeline.OrderNone, "retried in place": pipeline.OrderByKey,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, 1)
				g.publish(0, 3)
				g.run(job(pipeline.Channel{
					Name: "work", Order: order, Stages: []pipeline.Stage{failing(named("m1"), errBroken)}, Sink: &shelf{},
				}), actors.Options{})
				pass(time.Minute)

				dead := g.Messages(consumer.DeadLetterTopic("job"))
				if len(dead) != 1 {
					t.Fatalf("%d dead letters, want 1", len(dead))
				}

				cause, ok := consumer.CauseOf(dead[0].Props)
				if !ok || cause.Stage != "work/picky" || cause.Deliveries != 5 || cause.Group != "job" || cause.Time.IsZero() ||
					len(cause.Attempts) != 5 {
					t.Fatalf("the dead letter says %+v", cause)
				}

				for i, a := range cause.Attempts {
					if a.Delivery != i+1 || a.Stage != "work/picky" || a.Error != errBroken.Error() {
						t.Errorf("attempt %d is %+v", i+1, a)
					}

					if i > 0 && a.Time.Sub(cause.Attempts[i-1].Time) < time.Second {
						t.Errorf("attempt %d came %s after the one before", i+1, a.Time.Sub(cause.Attempts[i-1].Time))
					}
				}
			})
		})
	}
}
