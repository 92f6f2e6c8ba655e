package actors

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
)

// failed works off a failed pull.
func (p *puller) failed(err error) {
	outside, isOutside := errors.AsType[*consumer.OutOfRangeError](err)

	switch {
	case p.ctx.Err() != nil:
		return
	case errors.Is(err, consumer.ErrNotOwner), errors.Is(err, consumer.ErrLeft):
		// The assignment will say so too; until then there is nothing to pull.
		p.waits("its assignment")

		return
	case isOutside && outside.First > p.next:
		p.jump(outside)

		return
	case isOutside && p.rewound(outside):
		return
	}

	p.tries++
	pause := backoff(p.opts.PullBackoff, maxPullBackoff, p.tries)
	p.retryIn(pause, err)
	p.log.Warn("a pull failed; it is tried again", p.queueField(p.slot), zap.Int64("offset", int64(p.next)),
		zap.Duration("in", pause), zap.Error(err))
	p.publish(&QueueWaits{In: p.in(), Queue: p.slot.lease.Queue, Err: err, Retry: pause})
}

func (p *puller) retryIn(pause time.Duration, err error) {
	p.slot.pull.update(func(s *pullStatus) {
		if s.waits != "a retry" {
			s.waits, s.since = "a retry", p.clock.now()
		}

		s.err, s.retry = err, p.clock.now()+int64(pause)
	})

	p.seq++
	seq, self := p.seq, p.self
	p.timer = time.AfterFunc(pause, func() { p.root.Send(self, &pullAgain{seq: seq}) })
}

// jump goes on at the first offset that the broker still has.
func (p *puller) jump(outside *consumer.OutOfRangeError) {
	p.log.Warn("the broker no longer has the next messages; going on at its first one", p.queueField(p.slot),
		zap.Int64("from", int64(p.next)), zap.Int64("to", int64(outside.First)))
	p.publish(&OffsetJumped{In: p.in(), Queue: p.slot.lease.Queue, From: p.next, To: outside.First})

	p.next = outside.First
	p.root.Send(p.tracker, &passed{slot: p.slot, next: p.next})
	p.goOn()
}

// rewound deals with a queue that ends below the offset to pull: the broker has lost messages, or has come back empty.
// It returns true when the engine has been asked to begin again at the broker's first offset.
func (p *puller) rewound(outside *consumer.OutOfRangeError) bool {
	now := p.clock.now()
	if p.behind == 0 {
		p.behind = max(now, 1)
		p.publish(&OffsetRewound{In: p.in(), Queue: p.slot.lease.Queue, From: p.next, To: outside.First})
	}

	if p.opts.Rewind == RewindWait || now-p.behind < int64(p.opts.RewindPatience) {
		return false
	}

	p.log.Error("the broker's queue ends below what was read; beginning again at its first offset",
		p.queueField(p.slot), zap.Int64("from", int64(p.next)), zap.Int64("to", int64(outside.First)))
	p.publish(&OffsetRewound{
		In: p.in(), Queue: p.slot.lease.Queue, From: p.next, To: outside.First, Followed: true,
	})
	p.root.Send(p.engine, &Seek{Queue: p.slot.lease.Queue, Offset: outside.First})

	return true
}
