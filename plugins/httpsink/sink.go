// Package httpsink is the sink that sends messages to HTTP servers.
package httpsink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/internal/httpcall"
)

// Why a message cannot be part of a batch.
var (
	// ErrNotJSON rejects a message of [BatchArray].
	ErrNotJSON = errors.New("http: the body is not JSON, which an array is made of")
	// ErrLineBreak rejects a message of [BatchLines].
	ErrLineBreak = errors.New("http: the body has a line break in it, so it is not one line")
)

// Sink sends messages to HTTP servers. It is safe for concurrent use.
type Sink struct {
	options Options
	target  *httpcall.Target
	client  *httpcall.Client

	requests, messages, declined, bytes, refused, unreachable atomic.Int64
}

var (
	_ pipeline.Sink  = (*Sink)(nil)
	_ pipeline.Meter = (*Sink)(nil)
)

// New returns a sink that is not connected yet. It reads the files that its TLS options name.
func New(o Options) (*Sink, error) {
	if o.Method == "" {
		o.Method = Post
	}

	if o.Timeout == 0 {
		o.Timeout = plugins.Duration(10 * time.Second)
	}

	if o.MaxAnswer == 0 {
		o.MaxAnswer = 1 << 20
	}

	target, err := o.target()
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}

	client, err := httpcall.New(httpcall.Config{
		Timeout: time.Duration(o.Timeout), MaxAnswer: int64(o.MaxAnswer),
		Accept: o.Accept, Retry: o.Retry, Auth: o.Auth, TLS: o.TLS,
	})
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}

	return &Sink{options: o, target: target, client: client}, nil
}

// Write sends the batch, in one request or one for each message. Once a server does not answer, or answers that it has too
// much to do, the rest of the batch fails without being sent.
func (s *Sink) Write(ctx context.Context, batch []*pipeline.Message) error {
	var w write

	w.sink, w.batch = s, batch

	for _, group := range w.groups() {
		w.send(ctx, group)
	}

	return w.failures.Err()
}

// Close closes the connections. Closing twice does nothing.
func (s *Sink) Close() error {
	s.client.Close()

	return nil
}

// Meter returns what was sent, and what came of it.
func (s *Sink) Meter() map[string]int64 {
	return map[string]int64{
		"requests": s.requests.Load(), "messages": s.messages.Load(), "declined": s.declined.Load(),
		"bytes": s.bytes.Load(), "refused": s.refused.Load(), "unreachable": s.unreachable.Load(),
	}
}

// write is one call of Write.
type write struct {
	sink     *Sink
	batch    []*pipeline.Message
	failures pipeline.BatchError
	// down is why nothing more is sent.
	down error
}

// group are messages of the batch that go into one request.
type group struct {
	request httpcall.Request // without its body
	indexes []int
}

// place is where the group goes, without what may be secret.
func (g *group) place() string { return g.request.Method + " " + httpcall.PlaceOf(g.request.URL) }

// groups divides the batch into requests, and fails what cannot be part of one.
func (w *write) groups() []*group {
	var all []*group

	byKey := make(map[string]*group, 1)

	for i, m := range w.batch {
		r, key, err := w.sink.target.Of(m)
		if err != nil {
			err = fmt.Errorf("http: %w", err)
		} else {
			err = w.sink.options.Batch.fits(m.Body)
		}

		if err != nil {
			w.failures.Fail(i, pipeline.Reject(err))

			continue
		}

		r.Method = string(w.sink.options.Method)

		if w.sink.options.Batch == BatchNone {
			all = append(all, &group{request: r, indexes: []int{i}})

			continue
		}

		g, ok := byKey[key]
		if !ok {
			g = &group{request: r}
			byKey[key] = g
			all = append(all, g)
		}

		g.indexes = append(g.indexes, i)
	}

	return all
}

// send sends a group and fails its messages when that fails.
func (w *write) send(ctx context.Context, g *group) {
	if w.down != nil {
		w.fail(g, fmt.Errorf("http: not sent, since a request before it failed: %w", w.down))

		return
	}

	if err := ctx.Err(); err != nil {
		w.fail(g, fmt.Errorf("http: %w", err))

		return
	}

	r := g.request
	r.Body, r.WantBody = w.body(g), !w.sink.options.Results.IsZero()

	answer, err := w.sink.client.Do(ctx, r)

	w.sink.requests.Add(1)
	w.sink.bytes.Add(int64(len(r.Body)))

	status, answered := errors.AsType[*httpcall.StatusError](err)
	_, silent := errors.AsType[*httpcall.UnreachableError](err)

	switch {
	case err == nil:
		w.judge(g, answer)

		return
	case silent:
		w.sink.unreachable.Add(1)
		w.down = err
	case answered:
		w.sink.refused.Add(1)

		if overloaded(status.Status) && !pipeline.IsRejected(err) {
			w.down = err
		}
	}

	if answered && len(g.indexes) > 1 && pipeline.IsRejected(err) && divisible(status.Status) {
		half := len(g.indexes) / 2
		w.send(ctx, &group{request: g.request, indexes: g.indexes[:half]})
		w.send(ctx, &group{request: g.request, indexes: g.indexes[half:]})

		return
	}

	w.fail(g, fmt.Errorf("http: %w", err))
}

func (w *write) fail(g *group, err error) {
	for _, i := range g.indexes {
		w.failures.Fail(i, err)
	}
}

// body is what a request holds.
func (w *write) body(g *group) []byte {
	if w.sink.options.Batch == BatchNone {
		return w.batch[g.indexes[0]].Body
	}

	size := len("[]")
	for _, i := range g.indexes {
		size += len(w.batch[i].Body) + 1
	}

	body := make([]byte, 0, size)

	if w.sink.options.Batch == BatchLines {
		for _, i := range g.indexes {
			body = append(append(body, w.batch[i].Body...), '\n')
		}

		return body
	}

	for n, i := range g.indexes {
		body = append(append(body, "[,"[min(n, 1)]), w.batch[i].Body...)
	}

	return append(body, ']')
}

// overloaded reports whether a status asks to send nothing more for now.
func overloaded(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// divisible reports whether a status can be the fault of one message of many.
func divisible(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	default:
		return false
	}
}
