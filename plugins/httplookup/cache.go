package httplookup

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace/millrace/plugins"
)

// answer is what is taken of a server's answer. It does not change.
type answer struct {
	// value is JSON where it goes into the body, else text.
	value []byte
	// missing: there is nothing for the message.
	missing bool
}

// source is where an answer comes from.
type source uint8

const (
	fromServer source = iota
	fromCache
	fromOther // a request of another lane
)

// overhead is what an answer takes beside its bytes and those of its key: a guess at the lists and maps that it is in.
const overhead = 200

// cache remembers answers, those that were not asked for longest giving way, and has lanes that want the same at the same time
// wait for one of them to fetch it. It is safe for concurrent use.
type cache struct {
	most              int64
	keep, keepMissing time.Duration
	clock             plugins.Clock

	mu sync.Mutex // guards what is below
	// known has the elements of order, which are *entry, the one asked for last in front.
	known map[string]*list.Element
	order list.List
	size  int64
	// calls are under way.
	calls map[string]*call
}

type entry struct {
	key    string
	answer answer
	until  time.Time
}

func (e *entry) size() int64 { return int64(len(e.key)+len(e.answer.value)) + overhead }

// call is a fetch under way. What it has brought may be read when done is closed.
type call struct {
	done   chan struct{}
	answer answer
	err    error
}

// errGivenUp is what a call has brought whose lane went away with it.
var errGivenUp = errors.New("the lane that asked has given up")

func newCache(o Cache, clock plugins.Clock) *cache {
	return &cache{
		most: int64(o.Size), keep: time.Duration(o.For), keepMissing: time.Duration(o.Missing), clock: clock,
		known: make(map[string]*list.Element), calls: make(map[string]*call),
	}
}

// get returns what is remembered of a key, or what fetch brings. It fails as fetch does, which is not remembered, and when the
// context ends.
func (c *cache) get(ctx context.Context, key string, fetch func() (answer, error)) (answer, source, error) {
	for {
		a, known, other := c.find(key)

		switch {
		case known:
			return a, fromCache, nil
		case other == nil:
			a, err := c.fetch(key, fetch)

			return a, fromServer, err
		}

		select {
		case <-other.done:
		case <-ctx.Done():
			return answer{}, fromOther, ctx.Err()
		}

		// The end of another lane's time is no fault of this message.
		if !errors.Is(other.err, errGivenUp) && !errors.Is(other.err, context.Canceled) &&
			!errors.Is(other.err, context.DeadlineExceeded) {
			return other.answer, fromOther, other.err
		}
	}
}

// find returns what is remembered, or the call that is under way for it. When there is neither it begins one, which the caller
// has to make.
func (c *cache) find(key string) (a answer, known bool, other *call) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if at, ok := c.known[key]; ok {
		e, _ := at.Value.(*entry)
		if c.clock.Now().Before(e.until) {
			c.order.MoveToFront(at)

			return e.answer, true, nil
		}

		c.forget(at)
	}

	if other = c.calls[key]; other == nil {
		c.calls[key] = &call{done: make(chan struct{}), err: errGivenUp}
	}

	return answer{}, false, other
}

// fetch makes the call that find has begun, and ends it however fetch ends.
func (c *cache) fetch(key string, fetch func() (answer, error)) (answer, error) {
	a, err := answer{}, errGivenUp

	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()

		made := c.calls[key]
		made.answer, made.err = a, err

		delete(c.calls, key)

		if err == nil {
			c.remember(key, a)
		}

		close(made.done)
	}()

	a, err = fetch()

	return a, err
}

// remember takes an answer in. The caller holds the lock, and there is none for the key.
func (c *cache) remember(key string, a answer) {
	keep := c.keep
	if a.missing {
		keep = c.keepMissing
	}

	e := &entry{key: key, answer: a, until: c.clock.Now().Add(keep)}
	if keep <= 0 || e.size() > c.most {
		return
	}

	c.known[key] = c.order.PushFront(e)
	c.size += e.size()

	for c.size > c.most {
		c.forget(c.order.Back())
	}
}

// forget drops an answer. The caller holds the lock.
func (c *cache) forget(at *list.Element) {
	e, _ := c.order.Remove(at).(*entry)
	delete(c.known, e.key)
	c.size -= e.size()
}
