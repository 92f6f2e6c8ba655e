package actors

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

const (
	// returnsAtOnce is how many send-backs and dead letters are under way at a time. A guess: it keeps a flood of failures
	// from opening as many calls.
	returnsAtOnce = 16
	returnTimeout = 30 * time.Second
)

// returnDesk is the tracker's part that hands failed messages to the broker. A refused one is tried again until it is taken;
// its offset waits so long.
type returnDesk struct {
	tracker *tracker
	// all are the returns that are not done, by their tally.
	all map[*tally]*returning
	// line are the ones that wait for a free place; active is how many calls are under way.
	line   []*returning
	active int
	away   away
}

// returning is a failed message on its way back to the broker.
type returning struct {
	t       *tally
	failure *failure
	outcome pipeline.Outcome
	// tries counts the refused tries; err is the last refusal and next is when it is tried again, by the clock.
	tries int
	err   error
	next  int64
	timer *time.Timer
}

type (
	returnResult struct {
		internal

		r   *returning
		err error
	}
	returnAgain struct {
		internal

		r *returning
	}
)

// take begins the return of a failed message.
func (d *returnDesk) take(t *tally, f *failure) {
	if d.all == nil {
		d.all = make(map[*tally]*returning)
	}

	r := &returning{t: t, failure: f, outcome: d.tracker.plan.Job.Retry.Decide(f.attempts, f.err)}
	d.all[t] = r
	d.tracker.attempts.note(t, f.attempts, d.tracker.clock.now(), d.tracker.clock, f.err)
	d.again(r)
}

// again puts a return into the line.
func (d *returnDesk) again(r *returning) {
	if d.all[r.t] != r {
		return
	}

	r.timer, r.next = nil, 0
	d.line = append(d.line, r)
	d.start()
}

// start begins calls as long as there is a place.
func (d *returnDesk) start() {
	for d.active < returnsAtOnce && len(d.line) > 0 {
		r := d.line[0]
		d.line[0] = nil
		d.line = d.line[1:]

		if d.all[r.t] == r {
			d.active++
			d.call(r)
		}
	}
}

func (d *returnDesk) call(r *returning) {
	t := d.tracker
	slot := r.t.slot()
	rec := *r.t.record()
	m := &pipeline.Message{ID: rec.id, Key: rec.key, Origin: pipeline.Origin{
		Queue: slot.lease.Queue, Offset: rec.offset, Epoch: slot.lease.Epoch, Delivery: rec.delivery,
	}}
	ctx, member, self, root := t.ctx, t.member, t.self, t.root
	outcome, cause := r.outcome, causeOf(r.failure, t.plan.Job.Retry.DeadLetterTopic)

	if outcome.Verdict == pipeline.DeadLetter {
		cause.Attempts = t.attempts.of(rec.id)
	}

	go func() {
		ctx, cancel := context.WithTimeout(ctx, returnTimeout)
		defer cancel()

		var err error
		if outcome.Verdict == pipeline.DeadLetter {
			err = member.DeadLetter(ctx, m, cause)
		} else {
			err = member.SendBack(ctx, m, outcome.Delay)
		}

		root.Send(self, &returnResult{r: r, err: err})
	}()
}

// causeOf says why a message is dead.
func causeOf(f *failure, topic string) consumer.Cause {
	return consumer.Cause{
		Topic: topic, Stage: f.err.Channel + "/" + f.err.Stage, Error: f.err.Err.Error(), Stack: string(f.err.Stack),
		Deliveries: f.attempts,
	}
}

// result ends a call: the message is done, or the return is tried again later.
func (d *returnDesk) result(m *returnResult) {
	d.active--
	defer d.start()

	r, t := m.r, d.tracker
	if d.all[r.t] != r {
		return
	}

	slot := r.t.slot()
	q := slot.tracked

	switch {
	case m.err == nil:
		d.done(r)
		delete(d.all, r.t)
		t.done(r.t.block, int(r.t.index), int(r.t.index)+1)
		t.giveBack(q)
		t.closeIfIdle(q)
	case errors.Is(m.err, consumer.ErrNotOwner):
		t.lose(q, m.err) // which forgets this return with the others, and counts none of them as still running
	default:
		r.tries++
		r.err = m.err
		t.counts.Refused++
		pause := backoff(t.opts.ReturnBackoff, maxReturnBackoff, r.tries)
		r.next = t.clock.now() + int64(pause)
		r.timer = t.sendAfter(pause, &returnAgain{r: r})

		_, rec := offsetOf(r.t)
		t.log.Warn("the broker refused to take a message back; it is tried again", t.queueField(slot),
			zap.Int64("offset", int64(rec.offset)), zap.Duration("in", pause), zap.Error(m.err))
		t.publish(&ReturnRefused{
			In: t.in(), Queue: slot.lease.Queue, Offset: rec.offset, Tries: r.tries, Retry: pause, Err: m.err,
		})
	}
}

// done counts and publishes a return that the broker has taken.
func (d *returnDesk) done(r *returning) {
	t := d.tracker
	queue, rec := offsetOf(r.t)

	if r.outcome.Verdict == pipeline.DeadLetter {
		t.counts.DeadLettered++
		t.attempts.forget(rec.id)
		t.log.Warn("a message went to the dead letters", zap.Stringer("queue", queue),
			zap.Int64("offset", int64(rec.offset)), zap.String("id", rec.id), zap.Error(r.failure.err))
		t.publish(&MessageDead{
			In: t.in(), Queue: queue, Offset: rec.offset, MessageID: rec.id, Attempts: r.failure.attempts, Err: r.failure.err,
		})

		return
	}

	t.counts.SentBack++
	d.away.add(t.clock.now(), r.outcome.Delay)
	t.publish(&MessageReturned{
		In: t.in(), Queue: queue, Offset: rec.offset, MessageID: rec.id, Delivery: rec.delivery,
		Delay: r.outcome.Delay, Err: r.failure.err,
	})
}

// forget drops the returns of a queue that is given up, which are the next owner's, and says how many they were.
func (d *returnDesk) forget(q *tracked) (n int) {
	for t, r := range d.all {
		if t.slot() != q.slot {
			continue
		}

		if r.timer != nil {
			r.timer.Stop()
		}

		delete(d.all, t)

		n++
	}

	return n
}

func (d *returnDesk) stop() {
	for _, r := range d.all {
		if r.timer != nil {
			r.timer.Stop()
		}
	}
}
