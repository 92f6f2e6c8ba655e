package consumertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// ErrInjected is what a call fails with because [Faults] said so.
var ErrInjected = errors.New("consumertest: injected fault")

// Faults say how often what goes wrong. A rate is a probability from 0 (never) to 1 (always); the zero value is a broker
// without faults.
type Faults struct {
	// Refuse are the rates at which calls fail and do nothing.
	Refuse map[Op]float64
	// Lose are the rates at which calls fail although they took effect: their answer got lost.
	Lose map[Op]float64
	// Slow are the rates at which calls take time, up to Delay: some before they take effect, some before they answer.
	Slow map[Op]float64
	// Delay is the longest time that a slow call takes; 0 means 1 s.
	Delay time.Duration
	// Wrong is the rate at which Stored and Find, asked for an offset, give one of the Answers: as an adapter would that
	// trusts whatever its broker says.
	Wrong float64
	// Answers are the wrong answers that are given; empty means all.
	Answers []Answer
	// Gap is the rate at which offsets are left out before or behind a stored message: one of Gaps.
	Gap float64
	// Gaps are the sizes of gaps; empty means 1, 100 and 1,000,000.
	Gaps []int64
	// PruneOnCommit makes every commit delete the records below it.
	PruneOnCommit bool
}

// Answer is a wrong answer to a question for an offset.
type Answer uint8

// The wrong answers.
const (
	// AnswerMinusOne is offset -1.
	AnswerMinusOne Answer = iota
	// AnswerZero is offset 0.
	AnswerZero
	// AnswerAbsent is that nothing was ever stored (from Find: offset 0).
	AnswerAbsent
)

func (a Answer) offset() pipeline.Offset {
	if a == AnswerMinusOne {
		return -1
	}

	return 0
}

// SetFaults replaces the faults, for the calls that begin from now on. The argument's maps and slices must not be changed
// afterwards.
func (b *Broker) SetFaults(f Faults) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.faults = f
}

// happens decides by a rate. Only rates between never and always use up a random number.
func (b *Broker) happens(rate float64) bool {
	return rate >= 1 || rate > 0 && b.rnd.Float64() < rate
}

// wrongAnswer says whether a question for an offset is answered wrong, and how.
func (b *Broker) wrongAnswer() (Answer, bool) {
	if !b.happens(b.faults.Wrong) {
		return 0, false
	}

	answers := b.faults.Answers
	if len(answers) == 0 {
		answers = []Answer{AnswerMinusOne, AnswerZero, AnswerAbsent}
	}

	return answers[b.rnd.IntN(len(answers))], true
}

// append stores a record, perhaps with a gap before or behind it.
func (b *Broker) append(log *queueLog, r record) {
	if !b.happens(b.faults.Gap) {
		log.append(r, 0)

		return
	}

	gaps := b.faults.Gaps
	if len(gaps) == 0 {
		gaps = []int64{1, 100, 1_000_000}
	}

	gap := pipeline.Offset(gaps[b.rnd.IntN(len(gaps))])

	if b.rnd.IntN(2) == 0 {
		log.append(r, gap)

		return
	}

	log.append(r, 0)
	log.moveEnd(log.end + gap)
}

// slowness returns how long a call takes before its effect, and after it.
func (b *Broker) slowness(op Op) (first, then time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if !b.happens(b.faults.Slow[op]) {
		return 0, 0
	}

	longest := b.faults.Delay
	if longest <= 0 {
		longest = time.Second
	}

	slow := time.Duration(b.rnd.Int64N(int64(longest)) + 1)
	if b.rnd.IntN(2) == 0 {
		return slow, 0
	}

	return 0, slow
}

// pass lets time pass; it fails when the context ends first.
func pass(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}

	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do is the frame of every call: its slowness around its effect.
func (b *Broker) do(ctx context.Context, call Call, act func(*Call) error) error {
	first, then := b.slowness(call.Op)
	if err := pass(ctx, first); err != nil {
		return err
	}

	err := b.effect(ctx, call, act)
	if late := pass(ctx, then); late != nil {
		return late
	}

	return err
}

// effect is the part of a call that is done under the lock: refusal, the call's own action, a lost answer, the ledger.
func (b *Broker) effect(ctx context.Context, call Call, act func(*Call) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	call.At = time.Now()

	switch {
	case ctx.Err() != nil:
		call.Err = ctx.Err()
	case b.closed:
		call.Err = consumer.ErrClosed
	case b.happens(b.faults.Refuse[call.Op]):
		call.Err = fmt.Errorf("%s refused: %w", call.Op, ErrInjected)
	default:
		call.Err = act(&call)
		call.Applied = call.Err == nil

		if call.Applied && b.happens(b.faults.Lose[call.Op]) {
			call.Err = fmt.Errorf("%s done, its answer lost: %w", call.Op, ErrInjected)
		}
	}

	b.calls = append(b.calls, call)

	return call.Err
}
