package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// From is where to begin, in the order of a visit: one of Places, or a letter of one of Topics; nil means at the beginning.
	From *Place
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

	places, topics, err := c.left()
	if err != nil {
		return err
	}

	for _, place := range places {
		if err := visitOne(ctx, s, place, pick); err != nil {
			return err
		}
	}

	for _, topic := range topics {
		q := Query{Topic: topic, Settled: c.Settled}
		if c.From != nil && c.From.Queue.Topic == topic {
			q.From = c.From
		}

		if err := s.DeadLetters(ctx, q, pick); err != nil {
			return err //nolint:wrapcheck // it says what is wrong
		}
	}

	return nil
}

// visitOne calls visit with the letter that lies at a place.
func visitOne(ctx context.Context, s Shelf, place Place, visit func(*Letter) error) error {
	found := false

	err := s.DeadLetters(ctx, Query{Topic: place.Queue.Topic, At: &place, Settled: true}, func(l *Letter) error {
		found = true

		return visit(l)
	})
	if err != nil {
		return err //nolint:wrapcheck // it says what is wrong
	}

	if !found {
		return &UnknownLetterError{Place: place}
	}

	return nil
}

// left returns what is to be visited from From on.
func (c *Choice) left() (places []Place, topics []string, err error) {
	if c.From == nil {
		return c.Places, c.Topics, nil
	}

	if i := slices.Index(c.Places, *c.From); i >= 0 {
		return c.Places[i:], c.Topics, nil
	}

	i := slices.Index(c.Topics, c.From.Queue.Topic)
	if i < 0 {
		return nil, nil, fmt.Errorf("%s is none of the letters that are asked for, so one cannot begin there", c.From)
	}

	return nil, c.Topics[i:], nil
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
