package deadletter

import (
	"time"

	"github.com/millrace/millrace/consumer"
)

// Shown is a dead letter as it is shown as JSON, without its body.
type Shown struct {
	// Letter is its name, as [ParsePlace] reads it.
	Letter  string `json:"letter"`
	Settled bool   `json:"settled,omitempty"`
	// Group is whose dead letter it is, Died when it became one.
	Group string    `json:"group,omitempty"`
	Died  time.Time `json:"died,omitzero"`
	// Stage is "channel/stage", where it failed last.
	Stage string `json:"stage,omitempty"`
	Error string `json:"error,omitempty"`
	Stack string `json:"stack,omitempty"`
	// Tries is how often it was tried, Attempts are the last failures, oldest first.
	Tries    int                `json:"attempts"`
	Attempts []consumer.Attempt `json:"history,omitempty"`
	// Replays is how often it was replayed before.
	Replays int `json:"replays,omitempty"`
	// Topic is where it was first published, Queue and Offset are from where it was parked.
	Topic  string            `json:"topic,omitempty"`
	Queue  string            `json:"queue,omitempty"`
	Offset string            `json:"offset,omitempty"`
	ID     string            `json:"id"`
	Key    string            `json:"key,omitempty"`
	Tag    string            `json:"tag,omitempty"`
	Props  map[string]string `json:"props,omitempty"`
	Born   time.Time         `json:"born,omitzero"`
}

// Show returns the letter as it is shown.
func (l *Letter) Show() Shown {
	c := l.Cause()

	return Shown{
		Letter: l.Place.String(), Settled: l.Settled, Group: c.Group, Died: c.Time,
		Stage: c.Stage, Error: c.Error, Stack: c.Stack, Tries: c.Deliveries, Attempts: c.Attempts,
		Replays: l.Replays(), Topic: l.Topic(), Queue: l.Props[consumer.PropOriginQueue],
		Offset: l.Props[consumer.PropOriginOffset],
		ID:     l.ID, Key: l.Key, Tag: l.Tag, Props: l.OwnProps(), Born: l.Born,
	}
}
