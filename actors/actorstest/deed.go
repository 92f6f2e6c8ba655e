package actorstest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// errPlanned is what calls fail with because the plan says so.
var errPlanned = errors.New("actorstest: a planned failure")

// hash mixes the seed with names: what it returns is the same in each run of the seed, whatever the order of events.
func (c *course) hash(parts ...any) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, append([]any{c.seed, "|"}, parts...)...)

	const mix = 0x9e3779b97f4a7c15

	x := h.Sum64() * mix

	return x ^ x>>29
}

// draw returns a number for a message's next turn at a call, from 0 to 999, and others to go on with.
func (c *course) draw(what string, k *call, p part) (thousandth int, more uint64) {
	id := p.m.ID
	if of := p.whole.attempts(); len(of) > 0 {
		id = of[0].id
	}

	site := fmt.Sprint(what, "|", k.channel, "|", k.stage, "|", id)
	c.draws[site]++
	h := c.hash(site, c.draws[site])

	return int(h % 1000), h >> 10
}

// mayFail says whether a planned failure leaves each of the parts an attempt to go, so that dead letters are the job's own doing.
func (c *course) mayFail(parts ...part) bool {
	for _, p := range parts {
		for _, a := range p.whole.attempts() {
			if c.failures[a.id] >= c.plan.Job.Retry.Attempts-1 {
				return false
			}
		}
	}

	return true
}

// failure is a planned one, which may ask for another try soon.
func failure(h uint64) error {
	if h%2 == 0 {
		return pipeline.RetryAfter(errPlanned, time.Duration(h>>1%3000)*time.Millisecond)
	}

	return errPlanned
}

// planned fails a call or makes it slow, if the plan says so.
func (p *process) planned(ctx context.Context, k *call) error {
	c := p.course

	c.mu.Lock()
	crashed, trouble := p.crashed, c.trouble
	x, h := c.draw("call", k, k.parts[0])
	may := c.mayFail(k.parts...)
	c.mu.Unlock()

	const (
		fails = 40 // in a thousand
		slow  = 80
		share = 8 // of the channel's timeout, so that slow calls alone never pass it
		most  = 10 * time.Second
	)

	switch {
	case crashed:
		return context.Canceled
	case !trouble:
	case x < fails && may:
		return failure(h)
	case x < slow:
		longest := min(c.plan.Job.Channels[k.channel].Timeout/share, most)
		pause(ctx, time.Duration(h%uint64(longest)))
	}

	return nil
}

// unheard fails a write that has been done, if the plan says so.
func (p *process) unheard(k *call) error {
	c := p.course

	c.mu.Lock()
	defer c.mu.Unlock()

	const fails = 20

	if x, h := c.draw("unheard", k, k.parts[0]); c.trouble && x < fails && c.mayFail(k.parts...) {
		return failure(h)
	}

	return nil
}

// some fails some messages of a batch, if the plan says so.
func (p *process) some(k *call) *pipeline.BatchError {
	c := p.course

	c.mu.Lock()
	defer c.mu.Unlock()

	const fails = 20

	failures := &pipeline.BatchError{}

	for i, part := range k.parts {
		if x, h := c.draw("some", k, part); c.trouble && x < fails && c.mayFail(part) {
			failures.Fail(i, failure(h))
		}
	}

	return failures
}
