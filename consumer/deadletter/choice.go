package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Shelf is where dead letters lie.
type Shelf interface {
	// DeadLetters calls visit with dead letters, until the end or an error, which it returns. Visit must not call the shelf.
	DeadLetters(ctx context.Context, q Query, visit func(*Letter) error) error
	// Settle publishes dead letters again or drops them, and remembers that.
	Settle(ctx context.Context, topic string, all []Settlement) error
}

var _ Shelf = (*Desk)(nil)

// Choice picks dead letters.
type Choice struct {
	// Places are letters by name, Topics mean all letters in them.
	Places []Place
	Topics []string
	// Holds is the condition that they meet; nil means none.
	Holds func(*Letter) (bool, error)
	// Settled picks from topics those too that are settled.
	Settled bool
	// By leaves out what has died later; zero means nothing.
	By time.Time
}

// UnknownLetterError says that there is no such letter.
type UnknownLetterError struct{ Place Place }

var _ error = (*UnknownLetterError)(nil)

// Error says how to find those that are there.
func (e *UnknownLetterError) Error() string {
	return fmt.Sprintf("there is no letter %s; millrace dlq ls --all lists those of %s", e.Place, e.Place.Queue.Topic)
}

// SettledError says that a letter is settled, so that nothing is done with it.
type SettledError struct{ Place Place }

var _ error = (*SettledError)(nil)

// Error says what was done with it.
func (e *SettledError) Error() string {
	return e.Place.String() + " is settled: it has been replayed or dropped"
}

// Visit calls f with the letters that are chosen. It fails with an [*UnknownLetterError] when one by name is not there.
func (c *Choice) Visit(ctx context.Context, s Shelf, f func(*Letter) error) error {
	pick := func(l *Letter) error {
		if !c.By.IsZero() && l.Cause().Time.After(c.By) {
			return nil
		}

		if c.Holds != nil {
			if holds, err := c.Holds(l); err != nil || !holds {
				return err
			}
		}

		return f(l)
	}

	for i := range c.Places {
		found := false
		q := Query{Topic: c.Places[i].Queue.Topic, At: &c.Places[i], Settled: true}

		err := s.DeadLetters(ctx, q, func(l *Letter) error {
			found = true

			return pick(l)
		})
		if err != nil {
			return err //nolint:wrapcheck // it says what is wrong
		}

		if !found {
			return &UnknownLetterError{Place: c.Places[i]}
		}
	}

	for _, topic := range c.Topics {
		if err := s.DeadLetters(ctx, Query{Topic: topic, Settled: c.Settled}, pick); err != nil {
			return err //nolint:wrapcheck // as above
		}
	}

	return nil
}

// VisitMost calls f with at most so many letters; 0 means all.
func (c *Choice) VisitMost(ctx context.Context, s Shelf, most int, f func(*Letter) error) error {
	seen := 0

	err := c.Visit(ctx, s, func(l *Letter) error {
		if err := f(l); err != nil {
			return err
		}

		seen++
		if seen == most {
			return errEnough
		}

		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}

	return err
}
