package actors

import (
	"sync"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// How much is remembered of failures, for the dead letters that may come of them. A guess: some megabytes at most.
const (
	rememberedMessages = 1024
	rememberedAttempts = 8
	rememberedError    = 512
)

// attempts remembers the last failures of messages, over their redeliveries: brokers that copy what is sent back by themselves
// have no place for them. What is forgotten, in a restart too, is missing in the dead letter and nowhere else.
//
// Safe for concurrent use.
type attempts struct {
	mu   sync.Mutex
	byID map[string][]consumer.Attempt // guarded by mu
	// order holds the ids of byID, the oldest at next; guarded by mu.
	order [rememberedMessages]string
	next  int
}

// note adds a failure of the source message of t, on its attempt number delivery.
func (a *attempts) note(t *tally, delivery int, at int64, c *clock, err *pipeline.StageError) {
	id := t.record().id
	one := consumer.Attempt{
		Time: c.at(at), Delivery: delivery, Stage: err.Channel + "/" + err.Stage,
		Error: consumer.Cut(err.Err.Error(), rememberedError),
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	known, ok := a.byID[id]

	switch {
	case !ok && a.byID == nil:
		a.byID = make(map[string][]consumer.Attempt)
	case ok && len(known) == rememberedAttempts:
		copy(known, known[1:])
		known = known[:rememberedAttempts-1]
	}

	a.byID[id] = append(known, one)

	if !ok {
		delete(a.byID, a.order[a.next])
		a.order[a.next] = id
		a.next = (a.next + 1) % rememberedMessages
	}
}

// of returns what is remembered of a message, oldest first.
func (a *attempts) of(id string) []consumer.Attempt {
	a.mu.Lock()
	defer a.mu.Unlock()

	return append([]consumer.Attempt(nil), a.byID[id]...)
}

// forget drops what is remembered of a message: it is a dead letter, or somebody else's.
func (a *attempts) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()

	delete(a.byID, id)
}
