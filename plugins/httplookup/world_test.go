package httplookup_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/httplookup"
)

// clock is one that tests put forward.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.now
}

func (c *clock) Wait(context.Context, time.Time) error { return nil }

func (c *clock) forward(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.now = c.now.Add(by)
}

// world is a server and a stage that asks it.
type world struct {
	*httptest.Server

	clock clock
	stage *httplookup.Stage

	mu   sync.Mutex
	seen []string // the requests, as METHOD URI BODY; guarded by mu
}

// setup returns a world whose server answers by a function of its own.
func setup(tb testing.TB, options map[string]any, answer http.HandlerFunc) *world {
	tb.Helper()

	w := &world{clock: clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)

		w.mu.Lock()
		w.seen = append(w.seen, r.Method+" "+r.RequestURI+" "+string(body))
		w.mu.Unlock()

		answer(rw, r)
	}))
	tb.Cleanup(w.Close)

	all := map[string]any{"url": w.URL + "/{key}", "into": "body.answer"}
	maps.Copy(all, options)

	if text, ok := options["url"].(string); ok {
		all["url"] = w.URL + text
	}

	var o httplookup.Options
	if err := plugins.Decode(all, &o); err != nil {
		tb.Fatal(err)
	}

	var err error
	if w.stage, err = httplookup.New(o, &w.clock); err != nil {
		tb.Fatal(err)
	}

	return w
}

// says answers everything with a text.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// status answers everything with a status.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// requests returns what the server has been asked.
func (w *world) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()

	return append([]string{}, w.seen...)
}

func (w *world) lane(tb testing.TB) *httplookup.Transform {
	tb.Helper()

	lane, err := w.stage.Lane()
	if err != nil {
		tb.Fatal(err)
	}

	t := lane.(*httplookup.Transform)
	tb.Cleanup(func() { _ = t.Close() })

	return t
}

func message(key, body string) *pipeline.Message {
	m := pipelinetest.Message(body)
	m.Key = key

	return m
}

// pass sends a message through a lane, and returns what it has become; nil for nothing.
func pass(ctx context.Context, lane *httplookup.Transform, key, body string) (*pipeline.Message, error) {
	var next pipelinetest.Recorder
	if err := lane.Transform(ctx, message(key, body), next.Emit); err != nil || len(next.Messages) == 0 {
		return nil, err
	}

	return next.Messages[0], nil
}
