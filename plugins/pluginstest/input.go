package pluginstest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

func checkNothing(tb testing.TB, s *Subject) {
	tb.Helper()

	p, ok := start(tb, s)
	if !ok {
		return
	}
	defer p.stop()

	for _, batch := range [][]*pipeline.Message{nil, {}} {
		if outs, err := p.work(tb.Context(), batch); err != nil || len(outs) > 0 {
			tb.Errorf("an empty batch: %d outputs, %v", len(outs), err)
		}
	}
}

func checkMany(tb testing.TB, s *Subject) {
	tb.Helper()

	p, ok := start(tb, s)
	if !ok {
		return
	}
	defer p.stop()

	const batches, size = 4, 256

	for i := range batches {
		if _, err := p.work(tb.Context(), s.good(i*size, size)); err != nil {
			tb.Errorf("batch %d of %d messages: %v", i, size, err)
		}
	}
}

// checkHuge lets a plugin refuse a body, but not with an error that is as huge.
func checkHuge(tb testing.TB, s *Subject) {
	tb.Helper()

	const size = 8 << 20

	x := strings.Repeat("x", size)

	lines := strings.Repeat(x[:1<<10]+"\n", size>>10)

	for i, body := range []string{x, `{"n":"` + x + `"}`, strings.Repeat("[1],\n", size/5), lines} {
		p, ok := start(tb, s)
		if !ok {
			return
		}

		p.survives([]byte(body))
		p.worksOn(s, 100*(i+1))
		p.stop()
	}
}

// survives calls the plugin with a message that has this body.
func (p *part) survives(body []byte) {
	p.tb.Helper()

	const longest = 64 << 10

	m := Message(0, "")
	given := bytes.Clone(body)
	m.Body = given

	if _, err := p.work(p.tb.Context(), []*pipeline.Message{m}); err != nil && len(err.Error()) > longest {
		p.tb.Errorf("a body of %d bytes makes an error of %d", len(body), len(err.Error()))
	}

	if !bytes.Equal(given, body) {
		p.tb.Errorf("the plugin wrote into the body %.100q", body)
	}
}

func checkCancelled(tb testing.TB, s *Subject) {
	tb.Helper()

	p, ok := start(tb, s)
	if !ok {
		return
	}
	defer p.stop()

	ctx, cancel := context.WithCancel(tb.Context())
	cancel()

	outs, err := p.work(ctx, s.good(0, 3))

	causes := []error{err}

	if partial, ok := errors.AsType[*pipeline.BatchError](err); ok {
		causes = nil
		for _, cause := range partial.Failed {
			causes = append(causes, cause)
		}
	}

	for _, cause := range causes {
		if cause != nil && (!errors.Is(cause, context.Canceled) || pipeline.IsRejected(cause)) {
			tb.Errorf("the context has ended and the plugin fails with %v, want the context's error, not rejected", cause)
		}
	}

	_, sink := p.plugin.(pipeline.Sink)
	if err == nil && len(outs) == 0 && !s.Silent && !sink {
		tb.Errorf("the context has ended, and the plugin returned nil but emitted nothing")
	}

	p.worksOn(s, 100)
}

// checkInstances runs as many lanes as a job may have on a small machine; a sink is one for all of them.
func checkInstances(tb testing.TB, s *Subject) {
	tb.Helper()

	const lanes, batches, size = 4, 5, 10

	first, ok := start(tb, s)
	if !ok {
		return
	}
	defer first.stop()

	_, shared := first.plugin.(pipeline.Sink)

	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() {
			p := first

			if !shared {
				own, ok := start(tb, s)
				if !ok {
					return
				}
				defer own.stop()

				p = own
			}

			for b := range batches {
				if _, err := p.work(tb.Context(), s.good((lane*batches+b)*size, size)); err != nil {
					tb.Errorf("lane %d: %v", lane, err)
				}
			}
		})
	}

	all.Wait()
}

func checkBad(tb testing.TB, s *Subject) {
	tb.Helper()

	p, ok := start(tb, s)
	if !ok {
		return
	}
	defer p.stop()

	for i, body := range s.bad() {
		p.survives(body)
		p.worksOn(s, 10*(i+1))
	}
}
