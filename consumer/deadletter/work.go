package deadletter

import (
	"context"
	"errors"
	"time"
)

const (
	// pageLetters and pageBytes bound how many letters are held at once: they are read first and settled afterwards.
	pageLetters = 1000
	pageBytes   = 16 << 20
	// chunkBytes bounds what is settled in one request, beside its number of letters, which goes by the rate.
	chunkLetters = 100
	chunkBytes   = 4 << 20
	// chunksPerSecond is how often something is replayed at high rates.
	chunksPerSecond = 5
)

// DefaultRate is how many letters are replayed a second unless something else is asked for. A guess: a job takes more, but what
// has just recovered may not.
const DefaultRate = 100

// Work settles the letters of a choice, page by page. It is used once.
type Work struct {
	Shelf  Shelf
	Choice Choice
	// Do says what to do with a letter: [Drop] or [Replay.Settle].
	Do func(*Letter) (Settlement, error)
	// Rate is how many letters are settled a second; 0 means no limit.
	Rate float64
	// Again settles letters that are settled already, too; without it one of Choice.Places that is settled is an error.
	Again bool
	// End is when no more of them are begun with; zero means that all are settled.
	End time.Time

	settled int
	// begun is how many of Choice.Places are done.
	begun int
	// more says that End came before everything was settled.
	more bool
	// free is when the next letter may be settled by the rate.
	free time.Time
}

// Count says how many letters would be settled.
func (w *Work) Count(ctx context.Context) (int, error) {
	count := 0

	err := w.Choice.Visit(ctx, w.Shelf, func(l *Letter) error {
		if !l.Settled || w.Again {
			count++
		}

		return nil
	})

	return count, err
}

// Run settles the letters, and says how many it was, also when it fails; more says that End came before the last one. It fails
// with a [*SettledError] at a letter by name that is settled already.
func (w *Work) Run(ctx context.Context) (settled int, more bool, err error) {
	err = w.all(ctx)

	return w.settled, w.more, err
}

// Left returns those of Choice.Places that Run has not come to when it says that there is more.
func (w *Work) Left() []Place { return w.Choice.Places[w.begun:] }

// all settles a page of letters after the other: reading and settling take turns at the broker.
func (w *Work) all(ctx context.Context) error {
	c := w.Choice
	c.Settled = false

	for _, place := range w.Choice.Places {
		c.Places, c.Topics = []Place{place}, nil

		if _, err := w.page(ctx, &c); err != nil || w.more {
			return err
		}

		w.begun++
	}

	for _, topic := range w.Choice.Topics {
		c.Places, c.Topics = nil, []string{topic}

		for again := true; again && !w.more; {
			var err error
			if again, err = w.page(ctx, &c); err != nil {
				return err
			}
		}
	}

	return nil
}

// page settles the first letters of a choice, and says whether there may be more.
func (w *Work) page(ctx context.Context, c *Choice) (more bool, err error) {
	var (
		page []Settlement
		size int
	)

	err = c.Visit(ctx, w.Shelf, func(l *Letter) error {
		if l.Settled && !w.Again {
			return &SettledError{Place: l.Place}
		}

		one, err := w.Do(l)
		if err != nil {
			return err
		}

		page = append(page, one)
		size += l.Pipeline().Size()

		if len(page) == pageLetters || size >= pageBytes {
			return errEnough
		}

		return nil
	})
	if more = errors.Is(err, errEnough); err != nil && !more {
		return false, err
	}

	for len(page) > 0 {
		n := w.chunk(page)

		if err := w.pace(ctx, n); err != nil || w.more {
			return false, err
		}

		if err := w.Shelf.Settle(ctx, page[0].Place.Queue.Topic, page[:n]); err != nil {
			return false, err //nolint:wrapcheck // it says what is wrong
		}

		w.settled += n
		page = page[n:]
	}

	return more, nil
}

// chunk says how many of the page are settled at once.
func (w *Work) chunk(page []Settlement) int {
	most := chunkLetters
	if w.Rate > 0 {
		most = min(max(int(w.Rate/chunksPerSecond), 1), most)
	}

	size := 0

	for i := range page {
		if m := page[i].Message; m != nil {
			size += m.Pipeline().Size()
		}

		if i == most || i > 0 && size > chunkBytes {
			return i
		}
	}

	return len(page)
}

// pace waits until n more letters may be settled, and notes when it is too late for them.
func (w *Work) pace(ctx context.Context, n int) error {
	if w.Rate > 0 {
		wait := time.NewTimer(time.Until(w.free))
		defer wait.Stop()

		select {
		case <-wait.C:
		case <-ctx.Done():
			return ctx.Err()
		}

		w.free = time.Now().Add(time.Duration(float64(n) / w.Rate * float64(time.Second)))
	}

	w.more = !w.End.IsZero() && time.Now().After(w.End)

	return ctx.Err()
}
