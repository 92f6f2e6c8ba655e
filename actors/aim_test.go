package actors_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func TestMessageThatIsReplayedForAChannelTakesOnlyTheWayThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		left, right, last := &shelf{}, &shelf{}, &shelf{}
		failed := false
		right.fails = func(_ context.Context, batch []*pipeline.Message) error {
			if batch[0].ID == "r" && !failed {
				failed = true

				return errBroken
			}

			return nil
		}

		g.run(job(
			pipeline.Channel{Name: "first", Routes: []pipeline.Route{{To: "left"}, {To: "middle"}}},
			pipeline.Channel{Name: "left", Sink: left},
			pipeline.Channel{Name: "middle", Routes: []pipeline.Route{{To: "right"}, {To: "last"}}},
			pipeline.Channel{Name: "right", Sink: right},
			pipeline.Channel{Name: "last", Sink: last},
		), actors.Options{})
		pass(time.Second)

		replay := func(topic, id, channel string) {
			m := &pipeline.Message{ID: id, Key: id, Body: []byte("x"), Props: map[string]string{consumer.PropReplayChannel: channel}}
			if err := g.Publish(t.Context(), topic, []*pipeline.Message{m}); err != nil {
				t.Fatal(err)
			}

			pass(time.Minute)
		}
		retries := consumer.RetryTopic("job")

		replay(retries, "r", "right") // fails at first, and is delivered again
		replay(retries, "m", "middle")
		replay(retries, "l", "left")
		replay(retries, "n", "nosuch")
		replay("in", "i", "left") // anybody may write there

		for name, want := range map[string][]string{
			"left": {"l", "n", "i"}, "right": {"r", "m", "n", "i"}, "last": {"m", "n", "i"},
		} {
			got := map[string]*shelf{"left": left, "right": right, "last": last}[name].all()
			if !slices.Equal(got, want) {
				t.Errorf("%s got %v, want %v", name, got, want)
			}
		}

		g.finished()
	})
}
