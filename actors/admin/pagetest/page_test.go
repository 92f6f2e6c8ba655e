package pagetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

const (
	token = "a token of the tests"
	// script would change the page's title, were it more than a text.
	script = `<img src=x onerror="document.title='run'"><script>document.title='run'</script>`
)

// start serves a job of three channels whose message m0 fails, with a script for a key and in its error, and the dead letters
// that bury puts there.
func start(t *testing.T) *admin.Server {
	t.Helper()

	broker := consumertest.NewBroker(consumertest.Config{})
	t.Cleanup(broker.Close)
	broker.CreateTopic("quakes", 4)
	bury(t, broker)

	for i := range 200 {
		m := &pipeline.Message{ID: fmt.Sprintf("m%d", i), Key: fmt.Sprintf("k%d", i), Body: []byte("body")}
		if i == 0 {
			m.Key = script
		}

		if err := broker.Publish(t.Context(), "quakes", []*pipeline.Message{m}); err != nil {
			t.Fatal(err)
		}
	}

	check := pipeline.Func("check", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		if m.ID == "m0" {
			return pipeline.RetryAfter(errors.New(script), time.Hour)
		}

		return emit(m)
	})
	sink := pipeline.SinkFunc(func(context.Context, []*pipeline.Message) error { return nil })

	r, err := actors.Start(pipeline.Job{
		Name: "quakes", Source: pipeline.Source{Topics: []string{"quakes"}, Start: pipeline.First},
		Retry: pipeline.RetryPolicy{Attempts: 5, Delays: []time.Duration{time.Second}},
		Channels: []pipeline.Channel{
			{Name: "classify", Lanes: 4, Order: pipeline.OrderByKey, Timeout: time.Hour, Stages: []pipeline.Stage{check}, Routes: []pipeline.Route{
				{To: "alerts", When: func(m *pipeline.Message) bool { return m.ID == "m1" }}, {To: "archive"},
			}},
			{Name: "alerts", Sink: sink},
			{Name: "archive", Lanes: 2, Sink: sink},
		},
	}, broker, actors.Options{})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { r.Drain(-1) })

	jobs := new(admin.Jobs)
	jobs.Add(r)

	server, err := admin.Serve(admin.Options{Address: "127.0.0.1:0", Token: token, Jobs: jobs, DeadLetters: lettersOf(broker)})
	if err != nil {
		t.Fatal(err)
	}

	return server
}

func TestThePageDrawsAJobAndChangesIt(t *testing.T) {
	t.Parallel()

	server := start(t)
	ctx, steps := visit(t, server)

	steps("the job is drawn",
		holds(`document.querySelectorAll(".node[data-kind=channel]").length === 3`),
		holds(`document.querySelectorAll(".node[data-kind=sink]").length === 2`),
		holds(`document.querySelectorAll("#queues tbody tr[data-queue^=quakes]").length === 4`),
		holds(`[...document.querySelectorAll(".edges path")].filter((p) => p.getAttribute("d")).length >= 5`))

	steps("what stands is marked and explained",
		holds(`document.querySelector(".stand[data-tone=bad]")?.innerText.includes("a message has failed and is tried again")`),
		holds(`document.querySelector(".stand[data-tone=bad]")?.innerText.includes("<script>")`))

	steps("a pause is confirmed and acts",
		click(`tr[data-queue="quakes/3"] .actions button`),
		holds(`document.querySelector("#dialog").open`),
		does(`document.querySelector("#field-why").value = "by Ada, until Monday"; document.querySelector("#yes").click()`),
		holds(`document.querySelector('.stand[data-queue="quakes/3"]')?.innerText.includes("it is paused: by Ada, until Monday")`),
		holds(`!document.querySelector("#dialog").open`))

	looks(t, ctx, steps, "page")

	steps("a seek is confirmed and acts, also on what is paused",
		press(`tr[data-queue="quakes/3"] .actions button:last-child`), holds(`document.querySelector("#dialog").open`),
		does(`document.querySelector("#field-offset").value = "2"`), press("#yes"),
		holds(`!document.querySelector("#dialog").open`),
		holds(`document.querySelector('tr[data-queue="quakes/3"] td').innerText === "2"`))

	steps("a resume, too",
		click(`.stand[data-queue="quakes/3"] button`), holds(`document.querySelector("#dialog").open`), click("#yes"),
		holds(`!document.querySelector('.stand[data-queue="quakes/3"]')`))

	steps("a drain, too, and the end is told",
		click("#drain"), holds(`document.querySelector("#dialog").open`),
		does(`document.querySelector("#field-budget").value = "1s"; document.querySelector("#yes").click()`),
		holds(`document.querySelector("#notice").innerText.startsWith("quakes has ended: it was asked to stop")`))

	if title, err := chromedp.Run(ctx, chromedp.Title()); err != nil || title != "quakes · millrace" {
		t.Errorf("a script ran: the title is %q, %v", title, err)
	}

	if err := server.Close(); err != nil {
		t.Error(err)
	}

	steps("who does not answer is told", holds(`document.querySelector("#notice").innerText.includes("does not answer since")`))
}
