package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/consumer/deadletter"
)

// DeadLetters are those at a broker, as people read and settle them. They are safe for concurrent use.
type DeadLetters struct {
	// Shelf is where they lie, such as a [deadletter.Desk]. Required. A process has one for each broker, since the group that
	// settles letters has one member at a time.
	Shelf deadletter.Shelf
	// Topics returns the topics that hold any; nil means that topics have to be named.
	Topics func(context.Context) ([]string, error)
	// Where compiles an expression that picks letters; nil means that there are none.
	Where func(text string) (func(*deadletter.Letter) (bool, error), error)
}

// Visit calls visit with dead letters, queue by queue. It fails with a [*deadletter.UnknownLetterError] when one by name is
// not there. Visit must not ask for anything else of d.
func (d *DeadLetters) Visit(ctx context.Context, look Look, visit func(*Letter) error) error {
	c, err := d.choice(ctx, look.Pick, true)
	if err != nil {
		return err
	}

	c.Settled = look.Settled

	return c.VisitMost(ctx, d.Shelf, look.Max, func(l *deadletter.Letter) error { //nolint:wrapcheck // it says what is wrong
		return visit(letterOf(l, look.Body, nil))
	})
}

// Replay publishes dead letters again, and returns how many, also when it fails.
func (d *DeadLetters) Replay(ctx context.Context, r Replay) (int, error) {
	s, err := d.replay(ctx, r, time.Time{})

	return s.Settled, err
}

// Drop settles dead letters without replaying them, and returns how many, also when it fails.
func (d *DeadLetters) Drop(ctx context.Context, s Settling) (int, error) {
	done, err := d.drop(ctx, s, time.Time{})

	return done.Settled, err
}

// Edit replays a changed dead letter, unless nothing has changed.
func (d *DeadLetters) Edit(ctx context.Context, e Edit) (changed bool, err error) {
	change := e.change()

	to := deadletter.Replay{To: e.To, FailedChannel: e.FailedChannel}

	return deadletter.Replace(ctx, d.Shelf, e.Letter, e.Again, to, change.Apply) //nolint:wrapcheck // it says what is wrong
}

// replay replays letters until end, and drop drops them; zero means until the last one.
func (d *DeadLetters) replay(ctx context.Context, r Replay, end time.Time) (Settled, error) {
	if r.To != "" && r.FailedChannel {
		return Settled{}, failf(statusBad, "a replay goes to a topic or to the channel that failed, not to both")
	}

	rate := float64(deadletter.DefaultRate)
	if r.Rate != nil {
		rate = *r.Rate
	}

	if rate < 0 {
		return Settled{}, failf(statusBad, "the rate is %g; use 0 for no limit", rate)
	}

	to := deadletter.Replay{To: r.To, FailedChannel: r.FailedChannel}

	return d.settle(ctx, r.Settling, deadletter.Work{Do: to.Settle, Rate: rate, Again: r.Again, End: end})
}

func (d *DeadLetters) drop(ctx context.Context, s Settling, end time.Time) (Settled, error) {
	return d.settle(ctx, s, deadletter.Work{Do: deadletter.Drop, End: end})
}

// settle does what a work says with the letters that are picked, or counts them.
func (d *DeadLetters) settle(ctx context.Context, s Settling, w deadletter.Work) (Settled, error) {
	c, err := d.choice(ctx, s.Pick, s.All)
	if err != nil {
		return Settled{}, err
	}

	if c.By = s.By; c.By.IsZero() {
		c.By = time.Now()
	}

	w.Shelf, w.Choice = d.Shelf, c
	done := Settled{By: c.By}

	if s.DryRun {
		done.Settled, err = w.Count(ctx)

		return done, err //nolint:wrapcheck // it says what is wrong
	}

	if done.Settled, done.More, err = w.Run(ctx); done.More {
		done.Letters = w.Left()
	}

	return done, err //nolint:wrapcheck // as above
}

// choice returns the letters that are picked; all says that those of all topics are where none are named.
func (d *DeadLetters) choice(ctx context.Context, p Pick, all bool) (deadletter.Choice, error) {
	c := deadletter.Choice{Places: p.Letters}

	for _, topic := range p.Topics {
		if !slices.Contains(c.Topics, topic) {
			c.Topics = append(c.Topics, topic)
		}
	}

	if p.Where != "" {
		if d.Where == nil {
			return c, failf(statusBad, "this endpoint has no language for where; name letters or topics")
		}

		holds, err := d.Where(p.Where)
		if err != nil {
			return c, failf(statusBad, "where: %v", err)
		}

		c.Holds = holds
	}

	if len(c.Places)+len(c.Topics) > 0 {
		return c, nil
	}

	if !all {
		return c, failf(statusBad, `name letters or topics, or say "all": true for all topics with dead letters`)
	}

	if d.Topics == nil {
		return c, failf(statusBad, "this endpoint does not know which topics have dead letters; name them")
	}

	var err error
	if c.Topics, err = d.Topics(ctx); err != nil {
		return c, fmt.Errorf("which topics have dead letters: %w", err)
	}

	return c, nil
}

// LetterPage is the answer to /api/v1/deadletters.
type LetterPage struct {
	// Topics are those that are read.
	Topics  []string  `json:"topics"`
	Letters []*Letter `json:"letters"`
	// Next is where to go on, for the parameter from; nil at the end.
	Next *deadletter.Place `json:"next,omitempty"`
}

// pageBytes bounds the bodies of an answer.
const pageBytes = 4 << 20

// errFull ends a page.
var errFull = errors.New("the page is full")

// page returns the dead letters from one on, as many as fit into an answer and can be found until end.
func (d *DeadLetters) page(
	ctx context.Context, look Look, from *deadletter.Place, end time.Time, redact func(string) string,
) (*LetterPage, error) {
	c, err := d.choice(ctx, look.Pick, true)
	if err != nil {
		return nil, err
	}

	c.Settled, c.From = look.Settled, from
	p := &LetterPage{Topics: append([]string{}, c.Topics...), Letters: []*Letter{}}
	holds := c.Holds
	size, looked := 0, false

	c.Holds = func(l *deadletter.Letter) (bool, error) {
		if len(p.Letters) == look.Max || size >= pageBytes || looked && time.Now().After(end) {
			p.Next = &l.Place

			return false, errFull
		}

		looked = true

		if holds == nil {
			return true, nil
		}

		return holds(l)
	}

	err = c.Visit(ctx, d.Shelf, func(l *deadletter.Letter) error {
		p.Letters = append(p.Letters, letterOf(l, look.Body, redact))

		if look.Body {
			size += len(l.Body)
		}

		return nil
	})
	if err != nil && !errors.Is(err, errFull) {
		return nil, err //nolint:wrapcheck // it says what is wrong
	}

	return p, nil
}
