package pipeline

import (
	"context"
	"errors"
	"io"
	"iter"
	"runtime/debug"
	"slices"
)

// Chain is the stages of one lane, fused: each stage's emit is a plain call of the next one. A panic, an error, a filtered
// message and a fan-out all become something that the lane can count: outputs go to one function, failures to another.
//
// A Chain belongs to one goroutine; only At may be called from others.
type Chain struct {
	channel string
	links   []link
	hooks   ChainHooks
	run     context.Context //nolint:containedctx // the context of the Run at work; set and used inside one call
	failure *StageError
	// came numbers what has come of the present run: calls of Out and of Failed.
	came int
	at   mark
}

// ChainHooks connect a Chain to its lane.
type ChainHooks struct {
	// Out takes what comes out of the last stage. Required.
	Out Emit
	// Failed is told the message that a stage failed on, as that stage got it. When it returns true it has taken the message
	// over, to run it again from that stage later, and the failure counts no more; it must then take back what has come of
	// the call, since the stage will emit it again: everything with a number, by [Chain.Came], above since. Nil takes nothing
	// over.
	Failed func(stage int, m *Message, err *StageError, since int) bool
}

type link struct {
	chain *Chain
	index int
	name  string
	stage Transform
	emit  Emit
	// calls is how often the stage was called.
	calls int64
}

var errNilMessage = errors.New("emitted a nil message")

// NewChain makes an instance of every stage; what was made is closed again when one fails.
func NewChain(channel string, stages []Stage, hooks ChainHooks) (*Chain, error) {
	c := &Chain{channel: channel, hooks: hooks, links: make([]link, len(stages))}

	for i, s := range stages {
		t, err := s.New()
		if err != nil {
			return nil, errors.Join(&StageError{Channel: channel, Stage: s.Name, Err: err}, c.Close())
		}

		c.links[i] = link{chain: c, index: i, name: s.Name, stage: t}
	}

	for i := range c.links {
		c.links[i].emit = c.emitter(i)
	}

	return c, nil
}

// emitter returns the emit function of stage i: the call of the stage after it, or of Out after the last.
func (c *Chain) emitter(i int) Emit {
	if i == len(c.links)-1 {
		return func(m *Message) error {
			if m == nil {
				return errNilMessage
			}

			c.came++

			err := c.hooks.Out(m)
			if err != nil && c.failure == nil { // also when the stage swallows it
				c.failure = AsStageError(c.channel, c.links[i].name, err)
			}

			return err
		}
	}

	next := &c.links[i+1]

	return func(m *Message) error {
		if m == nil {
			return errNilMessage
		}

		err := next.run(m)
		c.at.set(int32(i))

		return err
	}
}

// Meters returns the stages that are a [Meter], by their names, in order. Safe to call from any goroutine.
func (c *Chain) Meters() iter.Seq2[string, Meter] {
	return func(yield func(string, Meter) bool) {
		for i := range c.links {
			if m, ok := c.links[i].stage.(Meter); ok && !yield(c.links[i].name, m) {
				return
			}
		}
	}
}

// Open opens the stages that are an [Opener], in order, and stops at the first error.
func (c *Chain) Open(ctx context.Context) error {
	for i := range c.links {
		o, ok := c.links[i].stage.(Opener)
		if !ok {
			continue
		}

		if err := o.Open(ctx); err != nil {
			return &StageError{Channel: c.channel, Stage: c.links[i].name, Err: err}
		}
	}

	return nil
}

// Close closes the stages that are an io.Closer, last to first, and joins their errors.
func (c *Chain) Close() error {
	var errs []error

	for _, l := range slices.Backward(c.links) {
		closer, ok := l.stage.(io.Closer)
		if !ok {
			continue
		}

		if err := closer.Close(); err != nil {
			errs = append(errs, &StageError{Channel: c.channel, Stage: l.name, Err: err})
		}
	}

	return errors.Join(errs...)
}

// Run sends a message through the stages from number `from` on (0 for all; len(stages) goes straight to Out). It returns
// the first failure that was not taken over, a *[StageError], also when a stage swallowed it.
func (c *Chain) Run(ctx context.Context, m *Message, from int) error {
	c.run, c.failure, c.came = ctx, nil, 0

	if from == len(c.links) {
		return c.hooks.Out(m)
	}

	_ = c.links[from].run(m)

	if c.failure != nil {
		return c.failure
	}

	return nil
}

// Came returns the number of what is coming of the present run, for the hooks: it grows with each call of Out and Failed.
func (c *Chain) Came() int { return c.came }

// Calls returns how often a stage was called.
func (c *Chain) Calls(stage int) int64 { return c.links[stage].calls }

// At returns the number of the stage that is running or ran last. Safe to call from any goroutine.
func (c *Chain) At() int { return int(c.at.get()) }

// run calls the stage and turns a panic into an error. It is one function, since a call more a stage is 2 ns a message.
func (l *link) run(m *Message) (err error) {
	c := l.chain
	c.at.set(int32(l.index))
	l.calls++
	since, returned := c.came, false

	defer func() {
		if returned { // saves the call of recover, 1 ns a stage
			return
		}

		if r := recover(); r != nil {
			err = c.fail(l, m, &StageError{
				Channel: c.channel, Stage: l.name, Err: &PanicError{Value: r}, Stack: debug.Stack(),
			}, since)
		}
	}()

	err = l.stage.Transform(c.run, m, l.emit)
	returned = true

	if err != nil {
		return c.fail(l, m, err, since)
	}

	if c.failure != nil {
		return c.failure
	}

	return nil
}

// fail records the first failure of a run. What an earlier stage returns after that is only its echo.
func (c *Chain) fail(l *link, m *Message, err error, since int) error {
	if c.failure != nil {
		return c.failure
	}

	failure := AsStageError(c.channel, l.name, err)
	c.came++

	if c.hooks.Failed != nil && c.hooks.Failed(l.index, m, failure, since) {
		return nil
	}

	c.failure = failure

	return failure
}

// AsStageError returns err with its place, keeping a [*StageError] that it is already.
func AsStageError(channel, stage string, err error) *StageError {
	if failure, ok := err.(*StageError); ok { //nolint:errorlint // only an unwrapped one says where it happened
		return failure
	}

	return &StageError{Channel: channel, Stage: stage, Err: err}
}

// Guard calls f and returns its error, or a panic of it as a [*StageError] at the given place.
func Guard(channel, stage string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &StageError{Channel: channel, Stage: stage, Err: &PanicError{Value: r}, Stack: debug.Stack()}
		}
	}()

	return f()
}
