package rocketmq

import (
	"context"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// aheadMessages is how many messages are asked for ahead at least. Brokers give no more at once, unless they are set up to.
const aheadMessages = 32

// reading is what lies ready of a queue: the rest of an answer that its reader had no room for, and the next answer, which is
// asked for while the messages of the last one are worked on. One reader has it at a time.
type reading struct {
	at   pipeline.Offset // where the next message is from; a reader at any other offset begins anew
	rest *pulled         // nil when the last answer has been read to its end
	// answers has those that are asked for ahead, one at a time, and is closed behind the last; nil when none are. Whoever is
	// through with them cancels them.
	answers <-chan obtained
	cancel  context.CancelFunc
}

// obtained is an answer to a pull, or why there is none.
type obtained struct {
	pulled

	err error
}

// stop ends what is asked for ahead.
func (r *reading) stop() {
	if r != nil && r.cancel != nil {
		r.cancel()
	}
}

// at returns what lies ready at an offset, and drops what lies ready anywhere else.
func (l *lease) at(from pipeline.Offset) *reading {
	r := l.reading.Swap(nil)
	if r == nil || r.at != from {
		r.stop()

		r = &reading{}
	}

	return r
}

// leave has what lies ready wait for the next pull.
func (l *lease) leave(r *reading) {
	if r.rest != nil || r.answers != nil {
		l.reading.Swap(r).stop()
	}
}

// obtain returns the answer to a pull, from what lies ready or from the broker.
func (m *member) obtain(
	ctx context.Context, held *lease, r *reading, from pipeline.Offset, limit consumer.Limit,
) (pulled, error) {
	if r.rest != nil {
		return *r.rest, nil
	}

	if r.answers != nil {
		select {
		case a, open := <-r.answers:
			if open {
				return a.pulled, a.err
			}
		case <-ctx.Done():
			return pulled{}, ctx.Err()
		case <-held.ctx.Done():
			return pulled{}, held.over()
		}
	}

	r.answers, r.cancel = nil, nil

	under, done := held.during(ctx)
	defer done()

	return m.ask(under, held, from, limit.Messages)
}

// ask pulls for the owner of a queue. A reset is followed at once, also when it is met ahead of what the owner has asked for: the
// broker heeds commits again as soon as it has told of one.
func (m *member) ask(ctx context.Context, held *lease, from pipeline.Offset, messages int) (pulled, error) {
	p, err := m.pull(ctx, held.Queue, held.suggested.Load(), pullWish{
		from: from, messages: messages, filter: m.options.Filters[held.Queue.Topic], hold: m.options.HoldPull,
	})
	if err != nil {
		return pulled{}, err
	}

	held.suggested.Store(p.suggested)

	if p.moved && p.status == statusReset && p.next != from {
		return pulled{}, m.followReset(ctx, held, p.next)
	}

	return p, nil
}

// more reports whether the broker has told of messages behind those of an answer.
func (p *pulled) more(from pipeline.Offset) bool { return !p.moved && p.next > from && p.next < p.end }

// readAhead asks for the answers from an offset on until one does not tell of more.
func (m *member) readAhead(held *lease, from pipeline.Offset, messages int) (<-chan obtained, context.CancelFunc) {
	ctx, cancel := context.WithCancel(held.ctx)
	answers := make(chan obtained)

	m.mu.Lock()
	defer m.mu.Unlock()

	if m.cause != nil { // nobody may begin anything
		close(answers)

		return answers, cancel
	}

	m.running.Go(func() {
		defer cancel()
		defer close(answers)

		for more := true; more; {
			p, err := m.ask(ctx, held, from, messages)

			select {
			case answers <- obtained{pulled: p, err: err}:
			case <-ctx.Done():
				return
			}

			more = err == nil && p.more(from)
			from = p.next
		}
	})

	return answers, cancel
}
