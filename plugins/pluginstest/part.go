package pluginstest

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// patience is how long a call may take before the suite takes it for hanging; a guess that no slow machine gets near.
const patience = time.Minute

// part is an instance that is open.
type part struct {
	tb     testing.TB
	plugin any
}

// start makes an instance and opens it. It reports whether that went well.
func start(tb testing.TB, s *Subject) (*part, bool) {
	tb.Helper()

	p := &part{tb: tb, plugin: s.New(tb)}
	if p.plugin == nil {
		return nil, false
	}

	opener, ok := p.plugin.(pipeline.Opener)
	if !ok {
		return p, true
	}

	// What is opened lives longer than the context that it is opened with.
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	defer cancel()

	var err error

	_, ok = bounded(tb, "Open", func() { err = opener.Open(ctx) })
	if !ok || err != nil {
		tb.Errorf("Open: %v", err)

		return nil, false
	}

	return p, true
}

// stop closes the instance.
func (p *part) stop() {
	p.tb.Helper()

	closer, ok := p.plugin.(io.Closer)
	if !ok {
		return
	}

	var err error
	if panicked, ok := bounded(p.tb, "Close", func() { err = closer.Close() }); ok && (err != nil || panicked != nil) {
		p.tb.Errorf("Close: %v, panic %v", err, panicked)
	}
}

// work hands a batch to the plugin, as the runtime would: message by message to a transform. It returns what was emitted
// and the first error. A panic is a failure of the test.
func (p *part) work(ctx context.Context, batch []*pipeline.Message) ([]*pipeline.Message, error) {
	p.tb.Helper()

	var outs []*pipeline.Message

	panicked, err := p.call(ctx, batch, func(m *pipeline.Message) error {
		outs = append(outs, m)

		return nil
	})
	if panicked != nil {
		p.tb.Errorf("the plugin panicked: %v", panicked)
	}

	return outs, err
}

// call hands a batch to the plugin and returns what it panicked with, or its error.
func (p *part) call(ctx context.Context, batch []*pipeline.Message, emit pipeline.Emit) (panicked any, err error) {
	p.tb.Helper()

	panicked, ok := bounded(p.tb, "a call of the plugin", func() { err = act(ctx, p.plugin, batch, emit) })
	if !ok {
		p.tb.FailNow() // it may still use what the rest of the check would look at
	}

	return panicked, err
}

func act(ctx context.Context, plugin any, batch []*pipeline.Message, emit pipeline.Emit) error {
	checked := func(m *pipeline.Message) error {
		if m == nil {
			return errNil
		}

		return emit(m)
	}

	switch plugin := plugin.(type) {
	case pipeline.Transform:
		for _, m := range batch {
			if err := plugin.Transform(ctx, m, checked); err != nil {
				return err
			}
		}

		return nil
	case pipeline.BatchTransform:
		return plugin.TransformBatch(ctx, batch, checked)
	case pipeline.Sink:
		return plugin.Write(ctx, batch)
	default:
		return fmt.Errorf("pluginstest: %T is no plugin", plugin)
	}
}

// trouble is a panic with the place where it happened.
type trouble struct {
	value any
	stack []byte
}

// String shows both.
func (t *trouble) String() string { return fmt.Sprintf("%v\n%s", t.value, t.stack) }

// bounded calls f in time. It returns what f panicked with, a *trouble or nil, and whether f came back.
func bounded(tb testing.TB, call string, f func()) (panicked any, ok bool) {
	tb.Helper()

	done := make(chan any, 1)

	go func() {
		var caught any

		defer func() { done <- caught }()
		defer func() {
			if v := recover(); v != nil {
				caught = &trouble{value: v, stack: debug.Stack()}
			}
		}()

		f()
	}()

	timer := time.NewTimer(patience)
	defer timer.Stop()

	select {
	case panicked = <-done:
		return panicked, true
	case <-timer.C:
		tb.Errorf("%s has not returned after %s", call, patience)

		return nil, false
	}
}
