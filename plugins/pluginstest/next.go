package pluginstest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
)

var (
	errNil     = errors.New("pluginstest: emitted a nil message")
	errRefused = errors.New("pluginstest: the next stage refuses")
)

// crash is what the next stage panics with.
type crash struct{}

func checkOutcome(tb testing.TB, s *Subject) {
	tb.Helper()

	p, ok := start(tb, s)
	if !ok {
		return
	}
	defer p.stop()

	p.worksOn(s, 0)
}

// worksOn holds that the plugin takes good messages, and emits something of them.
func (p *part) worksOn(s *Subject, n int) {
	p.tb.Helper()

	const count = 5

	outs, err := p.work(p.tb.Context(), s.good(n, count))
	if err != nil {
		p.tb.Errorf("good messages: %v", err)
	}

	_, sink := p.plugin.(pipeline.Sink)
	if silent := s.Silent || sink; (len(outs) == 0) != silent {
		p.tb.Errorf("%d outputs of good messages, expected some: %t", len(outs), !silent)
	}
}

// checkPanic asks that a panic reaches the runtime, which knows the place where it happened, and that no lock stays held.
func checkPanic(tb testing.TB, s *Subject) {
	tb.Helper()

	p, ok := start(tb, s)
	if !ok {
		return
	}
	defer p.stop()

	called := 0

	panicked, err := p.call(tb.Context(), s.good(0, 3), func(*pipeline.Message) error {
		called++

		panic(crash{}) //nolint:forbidigo // a bad day
	})

	if caught, _ := panicked.(*trouble); called > 0 && (caught == nil || caught.value != crash{}) {
		tb.Errorf("the next stage panicked; the plugin returned %v, panic %v", err, panicked)
	}

	if called > 1 {
		tb.Errorf("the plugin went on emitting after a panic of the next stage")
	}

	p.worksOn(s, 100)
}

func checkHang(tb testing.TB, s *Subject) {
	tb.Helper()

	p, ok := start(tb, s)
	if !ok {
		return
	}
	defer p.stop()

	ctx, cancel := context.WithTimeout(tb.Context(), 50*time.Millisecond)
	defer cancel()

	called := false

	panicked, err := p.call(ctx, s.good(0, 3), func(*pipeline.Message) error {
		called = true

		<-ctx.Done()

		return ctx.Err()
	})
	if panicked != nil || called && (!errors.Is(err, context.DeadlineExceeded) || pipeline.IsRejected(err)) {
		tb.Errorf("the next stage gave up at the deadline; the plugin returned %v, panic %v", err, panicked)
	}

	p.worksOn(s, 100)
}

func checkSlow(tb testing.TB, s *Subject) {
	tb.Helper()

	p, ok := start(tb, s)
	if !ok {
		return
	}
	defer p.stop()

	panicked, err := p.call(tb.Context(), s.good(0, 5), func(*pipeline.Message) error {
		<-time.After(2 * time.Millisecond)

		return nil
	})
	if err != nil || panicked != nil {
		tb.Errorf("with a slow next stage: %v, panic %v", err, panicked)
	}
}

func checkRefusal(tb testing.TB, s *Subject) {
	tb.Helper()

	p, ok := start(tb, s)
	if !ok {
		return
	}
	defer p.stop()

	refused := 0

	panicked, err := p.call(tb.Context(), s.good(0, 3), func(*pipeline.Message) error {
		refused++

		return errRefused
	})
	if panicked != nil || refused > 0 && !errors.Is(err, errRefused) {
		tb.Errorf("the next stage refused; the plugin returned %v, panic %v", err, panicked)
	}

	if refused > 1 {
		tb.Errorf("the plugin emitted %d messages, each of which was refused", refused)
	}

	p.worksOn(s, 100)
}
