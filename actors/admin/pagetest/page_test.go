package pagetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
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

// start serves a job of three channels whose message m0 fails, with a script for a key and in its error.
func start(t *testing.T) *admin.Server {
	t.Helper()

	broker := consumertest.NewBroker(consumertest.Config{})
	t.Cleanup(broker.Close)
	broker.CreateTopic("quakes", 4)

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

	server, err := admin.Serve(admin.Options{Address: "127.0.0.1:0", Token: token, Jobs: jobs})
	if err != nil {
		t.Fatal(err)
	}

	return server
}

func TestThePageDrawsAJobAndChangesIt(t *testing.T) {
	t.Parallel()

	server := start(t)
	ctx := browse(t)

	steps := func(what string, actions ...step) {
		t.Helper()

		if err := chromedp.Do(ctx, actions...); err != nil {
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
			t.Fatalf("%s: %v\n%s", what, err, text)
		}
	}

	steps("the token is asked for", chromedp.EmulateViewport(1280, 900), chromedp.Navigate("http://"+server.Address()+"/"),
		holds(`!document.querySelector("#token").hidden`),
		does(`document.querySelector("#secret").value = %q`, token),
		does(`document.querySelector("#token").requestSubmit()`))

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

	looks(t, ctx, steps)

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

// looks holds the page against each kind of screen: nothing sticks out. Where MILLRACE_SHOTS names a directory, pictures are put
// there.
func looks(t *testing.T, ctx context.Context, steps func(string, ...step)) { //nolint:revive // it is the test's
	t.Helper()

	for _, screen := range []struct {
		name          string
		width, height int64
		scheme        string
	}{
		{"light", 1280, 900, "light"}, {"dark", 1280, 900, "dark"}, {"phone", 360, 740, "light"}, {"phone-dark", 360, 740, "dark"},
	} {
		steps(screen.name, chromedp.EmulateViewport(screen.width, screen.height), scheme(screen.scheme),
			does(`document.body.offsetWidth`))

		fits, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.documentElement.scrollWidth <= innerWidth`))
		if err != nil {
			t.Fatal(err)
		}

		if !fits {
			t.Errorf("%s: the page is wider than the screen", screen.name)
		}

		if dir := os.Getenv("MILLRACE_SHOTS"); dir != "" {
			picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}

			if err := os.WriteFile(filepath.Join(dir, screen.name+".png"), picture, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// scheme has the browser ask for light or dark.
func scheme(name string) step {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})

		return err
	})
}
