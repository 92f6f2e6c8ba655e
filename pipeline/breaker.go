package pipeline

import (
	"fmt"
	"time"
)

// Breaker says when the failures of a channel are taken for those of something that it depends on, and not of its messages.
//
// It opens when nearly all first attempts of one stage, or of the sink, have failed one after the other. Then the channel
// pauses: one message at a time is tried, with growing pauses, and what fails meanwhile stays where it is and has not been
// attempted. The first message that gets through closes it. Failures marked by [Reject] are those of a message: they never
// count. The zero value is the default of each field.
type Breaker struct {
	// Off: every failure is that of its message, and a dependency that is down sends everything to the dead letters.
	Off bool
	// Ratio is the share of failures from which on it opens, more than 0 and at most 1; 0 means 0.8.
	Ratio float64
	// Window is how many attempts it looks at, at most 64, since the first failure; 0 means 20. It opens when it has seen half
	// of them: with fewer messages than that nobody can tell a dependency from a message.
	Window int
	// Pause is the time until the first message is tried; it doubles up to MaxPause. 0 means 1 s and 1 min.
	Pause, MaxPause time.Duration
	// Patience is how long nothing counts as an attempt; 0 means an hour. After that a message that is tried is attempted by
	// it, so that one which will never get through cannot hold for ever what has to wait behind it. The others wait on.
	Patience time.Duration
}

const (
	defaultBreakerRatio    = 0.8
	defaultBreakerWindow   = 20
	defaultBreakerPause    = time.Second
	defaultBreakerMaxPause = time.Minute
	defaultBreakerPatience = time.Hour

	// maxBreakerWindow is how many outcomes fit into one word.
	maxBreakerWindow = 64
)

// Least returns how many attempts must have been seen before the breaker opens.
func (b Breaker) Least() int { return (b.Window + 1) / 2 } //nolint:mnd // half of them

// Opens says whether so many failures among the attempts that were seen are those of a dependency.
func (b Breaker) Opens(failed, seen int) bool {
	return !b.Off && seen >= b.Least() && float64(failed) >= b.Ratio*float64(seen)
}

func (b Breaker) withDefaults() Breaker {
	if b.Off {
		return b
	}

	if b.Ratio == 0 {
		b.Ratio = defaultBreakerRatio
	}

	if b.Window == 0 {
		b.Window = defaultBreakerWindow
	}

	if b.Pause == 0 {
		b.Pause = defaultBreakerPause
	}

	if b.MaxPause == 0 {
		b.MaxPause = max(defaultBreakerMaxPause, b.Pause)
	}

	if b.Patience == 0 {
		b.Patience = defaultBreakerPatience
	}

	return b
}

func (c *checker) checkBreaker(i int) {
	b := c.job.Channels[i].Breaker

	if b.Off && b != (Breaker{Off: true}) {
		c.report(c.at(i, "breaker.off"), "it is off and has settings", "remove one or the other")

		return
	}

	if !(b.Off || b.Ratio > 0 && b.Ratio <= 1) { // which a number that is none is not either
		c.report(c.at(i, "breaker.ratio"), fmt.Sprintf("%v is no share of the attempts", b.Ratio),
			"use a number above 0 and at most 1, such as 0.8")
	}

	c.checkNotNegative(c.at(i, "breaker.window"), int64(b.Window))

	if b.Window > maxBreakerWindow {
		c.report(c.at(i, "breaker.window"), fmt.Sprintf("%d attempts are too many", b.Window),
			fmt.Sprintf("use at most %d", maxBreakerWindow))
	}

	c.checkNotNegative(c.at(i, "breaker.pause"), int64(b.Pause))
	c.checkNotNegative(c.at(i, "breaker.maxPause"), int64(b.MaxPause))
	c.checkNotNegative(c.at(i, "breaker.patience"), int64(b.Patience))

	if b.MaxPause >= 0 && b.MaxPause < b.Pause {
		c.report(c.at(i, "breaker.maxPause"), fmt.Sprintf("%s is shorter than the first pause of %s", b.MaxPause, b.Pause),
			"use at least the first pause")
	}
}
