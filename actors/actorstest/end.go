package actorstest

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// sink is a channel's sink in one process.
type sink struct {
	life

	p       *process
	channel int
	inner   pipeline.Sink
}

var _ pipeline.Sink = (*sink)(nil)

// Write calls the sink, unless the plan has it fail: before it has written, after that, or in part.
func (s *sink) Write(ctx context.Context, batch []*pipeline.Message) error {
	k, ok := s.p.endCall(s.channel, batch)
	if !ok {
		return s.inner.Write(ctx, batch)
	}

	returned := false

	var err error

	defer func() {
		if !returned {
			err = errPanic
		}

		s.p.endEnds(ctx, k, err, func(p part) {
			s.p.course.wrote(k, p)
			s.p.course.book.become(p, &outcome{})
		})
	}()

	err = s.write(ctx, k, batch)
	returned = true

	return err
}

func (s *sink) write(ctx context.Context, k *call, batch []*pipeline.Message) error {
	if err := s.p.planned(ctx, k); err != nil {
		return err
	}

	some := s.p.some(k)
	if len(some.Failed) == 0 {
		err := s.inner.Write(ctx, batch)
		if err == nil {
			err = s.p.unheard(k)
		}

		return err
	}

	var (
		rest []*pipeline.Message
		at   []int
	)

	for i, m := range batch {
		if some.Failed[i] == nil {
			rest, at = append(rest, m), append(at, i)
		}
	}

	if len(rest) == 0 {
		return some.Err()
	}

	err := s.inner.Write(ctx, rest)
	partly, isPartly := errors.AsType[*pipeline.BatchError](err)

	for i, to := range at {
		if isPartly {
			some.Fail(to, partly.Failed[i])
		} else {
			some.Fail(to, err)
		}
	}

	return some.Err()
}

// gather is one lane's instance of a gather.
type gather struct {
	life

	p       *process
	channel int
	inner   pipeline.BatchTransform
}

var _ pipeline.BatchTransform = (*gather)(nil)

// TransformBatch calls the gather, unless the plan has it fail, and follows what it emits.
func (g *gather) TransformBatch(ctx context.Context, batch []*pipeline.Message, emit pipeline.Emit) error {
	k, ok := g.p.endCall(g.channel, batch)
	if !ok {
		return g.inner.TransformBatch(ctx, batch, emit)
	}

	var (
		made     = newWhole()
		out      outcome
		good     []part
		returned bool
		err      error
		c        = g.p.course
	)

	defer func() {
		if !returned {
			err = errPanic
		}

		g.p.endEnds(ctx, k, err, func(p part) { good = append(good, p) })

		c.mu.Lock()
		defer c.mu.Unlock()

		if len(good) > 0 {
			c.book.gather(made, good, &out)
		}
	}()

	if err = g.p.planned(ctx, k); err == nil {
		err = g.inner.TransformBatch(ctx, batch, func(m *pipeline.Message) error {
			if m == nil {
				return emit(nil)
			}

			h := handleOf(made, m)

			failed := emit(m)
			if failed == nil {
				for target, n := range h.routed {
					out.route(target, n)
				}
			}

			return failed
		})
	}

	returned = true

	return err
}

// endCall notes a call of a sink or a gather. It is false for a batch with a stranger in it.
func (p *process) endCall(channel int, batch []*pipeline.Message) (*call, bool) {
	c := p.course

	c.mu.Lock()
	defer c.mu.Unlock()

	k := &call{p: p, channel: channel, stage: endStage}

	for _, m := range batch {
		part, ok := c.book.arrive(m, channel)
		if !ok {
			c.breakf("followed", place{queue: m.Origin.Queue, offset: m.Origin.Offset}, m.ID,
				"the end of %s gets it, and nobody knows of what message it is a part", c.site(channel, endStage))

			return nil, false
		}

		k.parts = append(k.parts, part)
	}

	c.enter(k)

	return k, true
}

// endEnds notes what has become of each part of a batch; good is called for those that have not failed.
func (p *process) endEnds(ctx context.Context, k *call, err error, good func(part)) {
	c := p.course

	c.mu.Lock()
	defer c.mu.Unlock()

	if !c.end(k) {
		return
	}

	partly, isPartly := errors.AsType[*pipeline.BatchError](err)

	for i, part := range k.parts {
		failed := err
		if isPartly {
			failed = partly.Failed[i]
		}

		switch {
		case failed == nil:
			good(part)
		case !cancelled(ctx, failed):
			c.fail(k, part, failed)
		}
	}
}

// pause lets time pass, or less when the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
