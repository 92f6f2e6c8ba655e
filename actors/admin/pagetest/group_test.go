package pagetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// warning is a broker that finds something wrong with the group.
type warning struct{ consumer.Broker }

type warned struct{ consumer.Member }

func (b warning) Join(ctx context.Context, s consumer.Subscription) (consumer.Member, error) {
	m, err := b.Broker.Join(ctx, s)

	return warned{m}, err
}

func (m warned) Assigned(ctx context.Context, known uint64) (consumer.Assignment, error) {
	a, err := m.Member.Assigned(ctx, known)
	a.Warning = "member b wants other topics"

	return a, err
}

func TestThePageTellsWhatConcernsTheWholeJob(t *testing.T) {
	t.Parallel()

	broker := consumertest.NewBroker(consumertest.Config{})
	t.Cleanup(broker.Close)
	broker.CreateTopic("mails", 1)

	if err := broker.Publish(t.Context(), "mails", []*pipeline.Message{{ID: "m", Body: []byte("body")}}); err != nil {
		t.Fatal(err)
	}

	later := pipeline.Func("later", func(context.Context, *pipeline.Message, pipeline.Emit) error {
		return pipeline.RetryAfter(errors.New("not yet"), time.Hour)
	})

	r, err := actors.Start(pipeline.Job{
		Name: "mails", Source: pipeline.Source{Topics: []string{"mails"}, Start: pipeline.First},
		Channels: []pipeline.Channel{{Name: "send", Stages: []pipeline.Stage{later}, Sink: pipeline.Discard}},
	}, warning{broker}, actors.Options{})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { r.Drain(-1) })

	jobs := new(admin.Jobs)
	jobs.Add(r)

	server, err := admin.Serve(admin.Options{Address: "127.0.0.1:0", Token: token, Jobs: jobs})
	if err != nil {
		t.Fatal(err)
	}

	_, steps := visit(t, server)

	steps("a warning of the group is shown",
		holds(`document.querySelector("#notice").innerText === "Warning: member b wants other topics."`))
	steps("what was sent back is counted until it comes again",
		holds(`/1 to come, in (1h|59m)/.test(document.querySelector("#figure-retried").parentElement.innerText)`))
}
