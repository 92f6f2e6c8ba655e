package rocketmq

import (
	"context"
	"math"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

const (
	// leastAsked is how many messages a pull asks for at least. Brokers give no more at once, unless they are set up to.
	leastAsked = 32
	// aheadAnswers is how many answers are asked for at once when it can be guessed where each begins. With three, neither the
	// broker nor the job waits for the other; four are no faster.
	aheadAnswers = 3
	// guessBytes is the size of an answer behind which nothing is guessed: a few of those are enough to be busy with. It is what
	// brokers give at the most, unless one message is larger or they are set up otherwise.
	guessBytes = 256 << 10
	// After a wrong guess at least minCareful answers are asked for one by one, and twice as many after the next one, up to
	// maxCareful; a row of trusted right guesses is needed to begin with minCareful again.
	minCareful, maxCareful, trusted = 8, 1024, 64
)

// reading is what lies ready of a queue: the rest of an answer that its reader had no room for, and the next answers, which are
// asked for while the messages of the last one are worked on. One reader has it at a time.
type reading struct {
	at   pipeline.Offset // where the next message is from; a reader at any other offset begins anew
	rest *pulled         // nil when the last answer has been read to its end
	// ahead is nil when nothing is asked for ahead. Whoever is through with it cancels it.
	ahead *ahead
	// careful is how many answers are asked for one by one before one is guessed again, pause what it was at first.
	careful, pause int
}

// ahead are pulls that take turns: the first is answered by the first channel, the second by the second, and so on.
type ahead struct {
	answers []chan obtained // each is closed behind its last
	cancel  context.CancelFunc
	taken   int
}

// obtained is an answer to a pull, or why there is none.
type obtained struct {
	pulled

	err error
}

// stop ends what is asked for ahead.
func (r *reading) stop() {
	if r != nil && r.ahead != nil {
		r.ahead.cancel()
		r.ahead = nil
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
func (l *lease) leave(r *reading) { l.reading.Swap(r).stop() }

// obtain returns the answer to a pull, from what lies ready or from the broker.
func (m *member) obtain(
	ctx context.Context, held *lease, r *reading, from pipeline.Offset, limit consumer.Limit,
) (pulled, error) {
	if r.rest != nil {
		return *r.rest, nil
	}

	if a := r.ahead; a != nil {
		select {
		case o, open := <-a.answers[a.taken%len(a.answers)]:
			if open && o.from == from {
				a.taken++
				r.careful = max(r.careful-1, 0)

				return o.pulled, o.err
			}

			if open {
				r.guessedWrong()
			}
		case <-ctx.Done():
			return pulled{}, ctx.Err()
		case <-held.ctx.Done():
			return pulled{}, held.over()
		}
	}

	r.stop()

	under, done := held.during(ctx)
	defer done()

	return m.ask(under, held, from, limit.Messages)
}

// guessedWrong has answers asked for one by one for a while.
func (r *reading) guessedWrong() {
	if r.ahead.taken >= trusted {
		r.pause = 0
	}

	r.pause = min(max(2*r.pause, minCareful), maxCareful)
	r.careful = r.pause
}

// ask pulls for the owner of a queue. A reset is followed at once, also when it is met ahead of what the owner has asked for: the
// broker heeds commits again as soon as it has told of one.
func (m *member) ask(ctx context.Context, held *lease, from pipeline.Offset, messages int) (pulled, error) {
	p, err := m.pull(ctx, held.Queue, held.suggested.Load(), pullWish{
		from: from, messages: max(messages, leastAsked), filter: m.options.Filters[held.Queue.Topic], hold: m.options.HoldPull,
	})
	if err != nil {
		return pulled{}, err
	}

	p.from = from
	held.suggested.Store(p.suggested)

	if p.reset() && p.next != from {
		return pulled{}, m.followReset(ctx, held, p.next)
	}

	return p, nil
}

// more reports whether the broker has told of messages behind those of an answer.
func (p *pulled) more() bool { return !p.moved && p.next > p.from && p.next < p.end }

// reset reports whether the broker has told that an administrator has set the group's offset.
func (p *pulled) reset() bool { return p.moved && p.status == statusReset }

// readAhead asks for the answers behind one that tells of more, as long as they do.
//
// Where the next one begins is known. Where those behind it begin is guessed: each answer brings as many messages as the last one
// did, as long as the broker's limit on their number is what ends it. What was guessed wrong is dropped unread.
func (m *member) readAhead(held *lease, r *reading, last pulled, messages int) {
	var (
		answers = aheadAnswers
		most    = math.MaxInt
		step    = last.next - last.from
	)

	if r.careful > 0 || len(last.body) > guessBytes {
		answers, most = 1, max(r.careful, minCareful)
	}

	ctx, cancel := context.WithCancel(held.ctx)
	a := &ahead{answers: make([]chan obtained, answers), cancel: cancel}
	r.ahead = a

	m.mu.Lock()
	defer m.mu.Unlock()

	for i := range a.answers {
		from := last.next + pipeline.Offset(i)*step
		answer := make(chan obtained)
		a.answers[i] = answer

		if m.cause != nil || from >= last.end { // nobody may begin anything, or there is nothing
			close(answer)

			continue
		}

		m.running.Go(func() {
			defer close(answer)

			for range most {
				p, err := m.askAhead(held, from, messages)

				select {
				case answer <- obtained{pulled: p, err: err}:
				case <-ctx.Done():
					return
				}

				from = p.next + pipeline.Offset(answers-1)*step
				guessable := answers == 1 || p.next == p.from+step && len(p.body) <= guessBytes

				if err != nil || !p.more() || !guessable || from >= p.end {
					return
				}
			}
		})
	}
}

// askAhead is ask for who pulls ahead of the owner, which may lose interest meanwhile: what the broker tells of a reset must be
// heard nevertheless. One to the very offset is news to the owner, who is not there yet.
func (m *member) askAhead(held *lease, from pipeline.Offset, messages int) (pulled, error) {
	p, err := m.ask(held.ctx, held, from, messages)
	if err == nil && p.reset() {
		err = m.followReset(held.ctx, held, p.next)
	}

	p.from = from

	return p, err
}
