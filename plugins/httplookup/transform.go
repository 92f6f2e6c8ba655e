// Package httplookup is the stage that asks an HTTP server about messages; as a plugin it is called http.
package httplookup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/document"
	"github.com/millrace/millrace/plugins/expression"
	"github.com/millrace/millrace/plugins/internal/httpcall"
)

// ErrNothing rejects a message that the server has nothing for.
var ErrNothing = errors.New("http: the server has nothing for it")

// Transform is one lane of a [Stage].
type Transform struct {
	stage *Stage
	scope expression.Scope
	plan  *document.Plan // where the answer goes in the body; nil for the whole of it and for a property

	found, missing, requests, remembered, shared, refused, unreachable atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
	_ io.Closer          = (*Transform)(nil)
)

// Transform adds the answer to m and emits it. It rejects m when the request cannot be made of it or its answer has no place in
// it, when the server has nothing for it where that is asked for ([ErrNothing]), and when the server refuses the request. It
// fails without a rejection when the server may answer another time, which [pipeline.RetryAfter] marks where the server has
// said when.
func (t *Transform) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	r, key, err := t.stage.request(m, &t.scope)
	if err != nil {
		return pipeline.Reject(fmt.Errorf("http: %w", err))
	}

	a, err := t.look(ctx, r, key)
	if err != nil {
		return fmt.Errorf("http: %w", err)
	}

	if a.missing {
		t.missing.Add(1)

		switch t.stage.options.Missing {
		case MissingReject:
			return pipeline.Reject(fmt.Errorf("%w: %s %.200s", ErrNothing, r.Method, httpcall.PlaceOf(r.URL)))
		case MissingDrop:
			return nil
		case MissingPass:
		}

		return emit(m)
	}

	if err := t.put(m, a.value); err != nil {
		return pipeline.Reject(fmt.Errorf("http: %w", err))
	}

	if err := emit(m); err != nil {
		return err
	}

	t.found.Add(1)

	return nil
}

// look returns what is remembered of a request, or asks.
func (t *Transform) look(ctx context.Context, r httpcall.Request, key string) (answer, error) {
	fetch := func() (answer, error) { return t.stage.ask(ctx, r, t) }

	if t.stage.cache == nil {
		return fetch()
	}

	a, from, err := t.stage.cache.get(ctx, key, fetch)

	switch from {
	case fromCache:
		t.remembered.Add(1)
	case fromOther:
		t.shared.Add(1)
	case fromServer:
	}

	return a, err
}

// put puts an answer where it goes.
func (t *Transform) put(m *pipeline.Message, value []byte) error {
	switch into := t.stage.options.Into; {
	case !into.InBody():
		m.SetProp(into.Prop(), string(value))
	case into.Path().IsRoot():
		m.Body = value // lanes share it, and nobody writes into bodies
	default:
		d, err := document.Of(m)
		if err != nil {
			return err //nolint:wrapcheck // says all
		}

		next, err := t.plan.Apply(d, [][]byte{value})
		if err != nil {
			return err //nolint:wrapcheck // says all
		}

		m.Body = next.Source()
		m.SetMemo(next)
	}

	return nil
}

// Close closes the connections that are idle. It never fails; closing twice does nothing.
func (t *Transform) Close() error {
	t.stage.client.Close()

	return nil
}

// Meter returns what this lane has asked, and what came of it.
func (t *Transform) Meter() map[string]int64 {
	return map[string]int64{
		"found": t.found.Load(), "missing": t.missing.Load(), "requests": t.requests.Load(),
		"remembered": t.remembered.Load(), "shared": t.shared.Load(),
		"refused": t.refused.Load(), "unreachable": t.unreachable.Load(),
	}
}
