package pipelinetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

// Case is one message and what a transform must make of it. The suite works on copies; a case is never changed.
type Case struct {
	// Name names the case in failures.
	Name string
	// In is the message; see [Message].
	In *pipeline.Message
	// Want are the outputs in their order; none means that the message is filtered. Origins are not compared: an output
	// has its source's or none.
	Want []*pipeline.Message
	// Fails says that Transform must return an error, one that Fails accepts ([pipeline.IsRejected], or [AnyError] where
	// it doesn't matter which). Nil means no error. What was emitted before an error doesn't matter.
	Fails func(err error) bool
}

// AnyError accepts every error, for [Case].Fails.
func AnyError(err error) bool { return err != nil }

// TestTransform is the suite that every transform must pass: the outcome of each case and what [pipeline.Transform] asks
// for besides. Fresh makes an instance as [pipeline.Stage].New does; each case has a fresh one. At least one case must
// have an output for the errors of emit to be tried.
func TestTransform(t *testing.T, fresh func() (pipeline.Transform, error), cases ...Case) {
	t.Helper()

	for _, check := range transformChecks() {
		t.Run(check.name, func(t *testing.T) {
			check.run(t, fresh, cases)
		})
	}
}

type newTransform = func() (pipeline.Transform, error)

type transformCheck struct {
	name string
	run  func(tb testing.TB, fresh newTransform, cases []Case)
}

func transformChecks() []transformCheck {
	return []transformCheck{
		{"makes of each case what it should", checkCases},
		{"stops at an error of emit and returns it", checkEmitError},
		{"loses nothing when its context has ended", checkTransformCancelled},
		{"survives any message", checkAnyMessage},
		{"has instances that share nothing", checkInstances},
		{"can be closed twice", checkTransformClose},
	}
}

func checkCases(tb testing.TB, fresh newTransform, cases []Case) {
	tb.Helper()

	for _, c := range cases {
		run, ok := transform(tb.Context(), tb, fresh, c, &Recorder{})
		if ok {
			run.holdOutcome(tb)
		}
	}
}

func checkEmitError(tb testing.TB, fresh newTransform, cases []Case) {
	tb.Helper()

	refusal := errors.New("pipelinetest: the next stage refuses")

	for _, c := range cases {
		if c.Fails != nil {
			continue
		}

		for after := range c.Want {
			run, ok := transform(tb.Context(), tb, fresh, c, &Recorder{Err: refusal, After: after})
			if !ok {
				continue
			}

			if !errors.Is(run.err, refusal) {
				tb.Errorf("%s: emit refused output %d, but Transform returned %v", c.Name, after, run.err)
			}

			if run.next.Refused > 1 {
				tb.Errorf("%s: emit refused output %d, but Transform went on emitting", c.Name, after)
			}
		}
	}
}

// checkTransformCancelled lets a transform ignore its context when it does all of its work, since nil after half of it
// would finish the message.
func checkTransformCancelled(tb testing.TB, fresh newTransform, cases []Case) {
	tb.Helper()

	ctx, cancel := context.WithCancel(tb.Context())
	cancel()

	for _, c := range cases {
		run, ok := transform(ctx, tb, fresh, c, &Recorder{})

		switch {
		case !ok:
		case !errors.Is(run.err, context.Canceled):
			run.holdOutcome(tb)
		case pipeline.IsRejected(run.err):
			tb.Errorf("%s: Transform rejects the message, since its context has ended: %v", c.Name, run.err)
		}
	}
}

func checkAnyMessage(tb testing.TB, fresh newTransform, cases []Case) {
	tb.Helper()

	const large = 1 << 20

	hostile := []*pipeline.Message{
		{}, Message(strings.Repeat("x", large)), Message(strings.Repeat("\x00", 100)), Message("\xff\xfe{\"a\":"),
	}

	for _, c := range cases {
		bare := c.In.Clone()
		bare.Body, bare.Props = nil, nil
		hostile = append(hostile, bare)
	}

	for _, m := range hostile {
		c := Case{Name: show(m), In: m}
		if run, ok := transform(tb.Context(), tb, fresh, c, &Recorder{}); ok {
			run.holdInput(tb)
		}
	}
}

// checkInstances runs instances side by side, as the lanes of a channel do.
func checkInstances(tb testing.TB, fresh newTransform, cases []Case) {
	tb.Helper()

	const lanes = 4

	var all sync.WaitGroup
	for range lanes {
		all.Go(func() { checkCases(tb, fresh, cases) })
	}

	all.Wait()
}

func checkTransformClose(tb testing.TB, fresh newTransform, _ []Case) {
	tb.Helper()

	if t, ok := instance(tb, fresh); ok && open(tb.Context(), tb, t) {
		shut(tb, t)
		shutTwice(tb, t)
	}
}

// transformRun is one call of Transform.
type transformRun struct {
	Case

	err    error
	next   *Recorder           // holds the outputs as they were emitted
	before *pipeline.Message   // the input before the call
	given  *pipeline.Message   // the input, after the call
	body   []byte              // the bytes that were the input's body, after the call
	taken  []*pipeline.Message // the outputs themselves, after the call
	left   []*pipeline.Message // the outputs as the next stage has left them
}

// transform calls a fresh instance, and reports whether it came back.
func transform(ctx context.Context, tb testing.TB, fresh newTransform, c Case, next *Recorder) (*transformRun, bool) {
	tb.Helper()

	t, ok := instance(tb, fresh)
	if !ok || !open(tb.Context(), tb, t) {
		return nil, false
	}
	defer shut(tb, t)

	run := &transformRun{Case: c, next: next, before: snapshot(c.In), given: snapshot(c.In)}
	run.body = run.given.Body

	ok = bounded(tb, c.Name+": Transform", func() { run.err = t.Transform(ctx, run.given, run.emit) })

	return run, ok
}

func instance(tb testing.TB, fresh newTransform) (pipeline.Transform, bool) {
	tb.Helper()

	t, err := fresh()
	if err != nil || t == nil {
		tb.Errorf("New made %v, with error %v", t, err)

		return nil, false
	}

	return t, true
}

// emit takes a message as a next stage would: it changes what it was given, since it owns it.
func (r *transformRun) emit(m *pipeline.Message) error {
	if m == nil {
		return r.next.Emit(nil)
	}

	if err := r.next.Emit(snapshot(m)); err != nil {
		return err
	}

	m.Tag += " changed by the next stage"
	m.SetProp("pipelinetest", m.Tag)

	r.taken, r.left = append(r.taken, m), append(r.left, snapshot(m))

	return nil
}

// holdOutcome compares what came of the call with the case.
func (r *transformRun) holdOutcome(tb testing.TB) {
	tb.Helper()
	r.holdInput(tb)

	if r.Fails != nil {
		if r.err == nil || !r.Fails(r.err) {
			tb.Errorf("%s: Transform returned %v, which is not the error that was expected", r.Name, r.err)
		}

		return
	}

	if r.err != nil {
		tb.Errorf("%s: Transform: %v", r.Name, r.err)

		return
	}

	if got, want := len(r.next.Messages), len(r.Want); got != want {
		tb.Errorf("%s: %d outputs, want %d", r.Name, got, want)

		return
	}

	for i, got := range r.next.Messages {
		if !same(got, r.Want[i]) {
			tb.Errorf("%s: output %d is\n\t%s, want\n\t%s", r.Name, i, show(got), show(r.Want[i]))
		}

		if got.Origin != r.In.Origin && got.Origin != (pipeline.Origin{}) {
			tb.Errorf("%s: output %d has the origin %+v, its source %+v", r.Name, i, got.Origin, r.In.Origin)
		}
	}
}

// holdInput checks what Transform must leave alone: messages that it has emitted, the bytes of a body, and the whole input
// when it fails by itself.
func (r *transformRun) holdInput(tb testing.TB) {
	tb.Helper()

	if !bytes.Equal(r.body, r.before.Body) {
		tb.Errorf("%s: Transform wrote into the body of its input", r.Name)
	}

	if own := r.err != nil && len(r.taken) == 0; own && (!same(r.given, r.before) || r.given.Origin != r.before.Origin) {
		tb.Errorf("%s: Transform failed and left the input as\n\t%s, it was\n\t%s", r.Name, show(r.given), show(r.before))
	}

	for i, m := range r.taken {
		if !same(m, r.left[i]) {
			tb.Errorf("%s: Transform changed output %d after emitting it", r.Name, i)
		}
	}
}
