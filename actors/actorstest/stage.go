package actorstest

import (
	"context"
	"errors"
	"io"

	"github.com/millrace/millrace/pipeline"
)

// life hands on what a plugin may implement beside its work.
type life struct{ plugin any }

// Open opens the plugin, where it is an opener.
func (l life) Open(ctx context.Context) error {
	if o, ok := l.plugin.(pipeline.Opener); ok {
		return o.Open(ctx)
	}

	return nil
}

// Close closes the plugin, where it is a closer.
func (l life) Close() error {
	if c, ok := l.plugin.(io.Closer); ok {
		return c.Close()
	}

	return nil
}

// Meter returns the plugin's counts, where it has some.
func (l life) Meter() map[string]int64 {
	if m, ok := l.plugin.(pipeline.Meter); ok {
		return m.Meter()
	}

	return nil
}

// frame is a call of a stage, inside of the one whose emit it is.
type frame struct {
	outcome

	call  *call
	part  part
	outer *frame
	// broken: something behind has failed for good. failed: this call has by itself.
	broken, failed bool
}

// stage is one lane's instance of a stage.
type stage struct {
	life

	p              *process
	channel, index int
	inner          pipeline.Transform
}

var _ pipeline.Transform = (*stage)(nil)

// passing is a message that is being emitted: by which call, and the call that has taken it, if any.
type passing struct{ from, taken *frame }

// Transform calls the stage, unless the plan has it fail, and follows what it emits.
func (s *stage) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) (err error) {
	f := s.enter(m)
	if f == nil {
		return s.inner.Transform(ctx, m, emit)
	}

	returned := false

	defer func() {
		if !returned {
			err = errPanic
		}

		s.leave(ctx, f, err)
	}()

	if err = s.p.planned(ctx, f.call); err == nil {
		err = s.inner.Transform(ctx, m, func(out *pipeline.Message) error {
			if out == nil {
				return emit(nil)
			}

			return s.pass(f, out, emit)
		})
	}

	returned = true

	return err
}

var errPanic = errors.New("it panics")

// enter notes the call. Nil means that the message is a stranger.
func (s *stage) enter(m *pipeline.Message) *frame {
	c := s.p.course

	c.mu.Lock()
	defer c.mu.Unlock()

	f := &frame{}

	if x := c.passing[m]; x != nil && x.taken == nil {
		x.taken = f
		f.outer = x.from
		f.part = part{m: m, whole: x.from.part.whole, key: x.from.part.key}
	} else {
		p, ok := c.book.arrive(m, s.channel)
		if !ok {
			c.breakf("followed", place{queue: m.Origin.Queue, offset: m.Origin.Offset}, m.ID,
				"%s gets it, and nobody knows of what message it is a part", c.site(s.channel, s.index))

			return nil
		}

		f.part = p
	}

	f.call = &call{p: s.p, channel: s.channel, stage: s.index, parts: []part{f.part}}
	c.enter(f.call)

	if s.index == 0 {
		c.checkOrder(f.call)
	}

	return f
}

// pass emits a message and notes what becomes of it.
func (s *stage) pass(f *frame, out *pipeline.Message, emit pipeline.Emit) error {
	c := s.p.course
	spec := &c.plan.Job.Channels[s.channel]
	last := s.index == len(spec.Stages)-1
	x := &passing{from: f}

	var h *handle

	c.mu.Lock()
	if last && spec.Sink == nil && spec.Gather == nil {
		h = handleOf(f.part.whole, out)
	} else if !last {
		c.passing[out] = x
	}
	c.mu.Unlock()

	err := emit(out)

	c.mu.Lock()
	defer c.mu.Unlock()

	delete(c.passing, out)

	switch {
	case err != nil:
		f.broken = true

		for _, a := range f.part.whole.attempts() {
			a.failed = true
		}
	case x.taken != nil && x.taken.failed: // to be tried again from there
		f.missed = append(f.missed, out)
	case x.taken != nil:
		f.add(&x.taken.outcome)
	case h != nil:
		for target, n := range h.routed {
			f.route(target, n)
		}
	default:
		f.outs = append(f.outs, out)
	}

	return err
}

// leave notes what has come of the call.
func (s *stage) leave(ctx context.Context, f *frame, err error) {
	c := s.p.course

	c.mu.Lock()
	defer c.mu.Unlock()

	counts := c.end(f.call)

	if err != nil && !f.broken {
		f.failed = true

		if !cancelled(ctx, err) && counts {
			c.fail(f.call, f.part, err)
		}
	}

	if f.outer == nil && !f.failed && !f.broken && counts {
		c.book.become(f.part, &f.outcome)
	}
}
