package consumertest

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Fate is what has become of a message, by the id under which it was published.
type Fate struct {
	// Delivered is the number of its last delivery; Queue and Offset are where that is stored.
	Delivered int
	Queue     pipeline.Queue
	Offset    pipeline.Offset
	// SentBack and Dead are how often a group has sent it back, and has parked it.
	SentBack, Dead int
}

// Fates returns what has become of every message of some topics, as a group has them: its retry topic is looked at too.
func (b *Broker) Fates(group string, topics ...string) map[string]Fate {
	fates := make(map[string]Fate)

	for _, topic := range append(slices.Clone(topics), consumer.RetryTopic(group)) {
		for _, m := range b.Messages(topic) {
			if f := fates[m.ID]; f.Delivered < m.Origin.Delivery {
				f.Delivered, f.Queue, f.Offset = m.Origin.Delivery, m.Origin.Queue, m.Origin.Offset
				fates[m.ID] = f
			}
		}
	}

	for _, c := range b.Calls(OpSendBack, OpDeadLetter) {
		f, ok := fates[c.ID]
		if !ok || c.Group != group || !c.Applied || c.Repeated {
			continue
		}

		if c.Op == OpSendBack {
			f.SentBack++
		} else {
			f.Dead++
		}

		fates[c.ID] = f
	}

	return fates
}

// Behind says what a group has not finished, in words: queues of the topics and of its retry topic whose end is not
// committed, and messages that are not due yet. An instance means the offsets of one broadcasting member, which has no
// retry topic.
func (b *Broker) Behind(group, instance string, topics ...string) []string {
	if instance == "" {
		topics = append(slices.Clone(topics), consumer.RetryTopic(group))
	}

	var behind []string

	for _, topic := range topics {
		for _, s := range b.StandingsOf(group, instance, topic) {
			if c := s.Checkpoint.With(s.Returned...); c.Next != s.End {
				behind = append(behind, fmt.Sprintf("%s at %v of %d", s.Queue, c, s.End))
			}
		}
	}

	if n := b.Delayed(group); n > 0 {
		behind = append(behind, fmt.Sprintf("%d delayed", n))
	}

	return behind
}
