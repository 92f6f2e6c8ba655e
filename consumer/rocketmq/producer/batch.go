package producer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace/pipeline"
)

const (
	// maxBatch is the most bytes of one request of several messages; a guess below the 4 MiB that brokers take.
	maxBatch = 1 << 20
	// maxAtOnce is how many requests of one call are under way at a time.
	maxAtOnce = 8

	anyQueue = -1
)

// SendBatch stores messages in a topic, in as few requests as possible: one for each queue and each MiB. Messages of one key
// keep their order. Delayed and compressed ones are sent alone.
//
// On success there is one Sent for each message, in their order. Otherwise the error is a [*pipeline.BatchError] that names
// each message which was not stored, as far as known, with an error as of Send; those behind a failed one in its queue are not
// sent. One that no attempt will change is marked by [pipeline.Reject]. What sent says of the others is true then too. An error
// of another type fails them all.
func (p *Producer) SendBatch(ctx context.Context, topic string, messages []Message) (sent []Sent, err error) {
	if err := p.check(topic); err != nil {
		return nil, err
	}

	b := &batch{producer: p, topic: topic, sent: make([]Sent, len(messages))}

	groups, err := b.groups(ctx, messages)
	if err != nil {
		return nil, err
	}

	var running sync.WaitGroup

	turns := make(chan struct{}, maxAtOnce)

	for _, group := range groups {
		turns <- struct{}{}

		running.Go(func() {
			b.deliver(ctx, group)
			<-turns
		})
	}

	running.Wait()

	return b.sent, b.failed.Err()
}

// batch is one call to SendBatch.
type batch struct {
	producer *Producer
	topic    string

	mu     sync.Mutex // guards the rest
	sent   []Sent
	failed pipeline.BatchError
}

// groups returns the letters of each queue in their order; of those without a key, which need none, each request is a group.
// Messages that cannot be sent are in none.
func (b *batch) groups(ctx context.Context, messages []Message) ([][]*letter, error) {
	p := b.producer

	route, err := p.route(ctx, b.topic)
	if err != nil {
		return nil, err
	}

	byQueue := map[int][]*letter{}

	for i := range messages {
		l, err := p.letter(&messages[i])
		if err != nil {
			b.failed.Fail(i, pipeline.Reject(p.about(b.topic, err))) // no attempt will change it

			continue
		}

		l.at = i
		// Those that brokers do not take in a batch.
		l.alone = l.alone || strings.HasPrefix(b.topic, "%")

		queue := anyQueue
		if n := len(route.Writable); l.key != "" && n > 0 {
			queue = queueOf(l.key, n)
		}

		byQueue[queue] = append(byQueue[queue], l)
	}

	var groups [][]*letter

	for group := byQueue[anyQueue]; len(group) > 0; {
		n := b.together(group)
		groups, group = append(groups, group[:n]), group[n:]
	}

	delete(byQueue, anyQueue)

	return slices.AppendSeq(groups, maps.Values(byQueue)), nil
}

// deliver sends the letters of a group, one request after the other, until one fails.
func (b *batch) deliver(ctx context.Context, group []*letter) {
	for len(group) > 0 {
		n := b.together(group)
		sent, err := b.producer.deliver(ctx, b.topic, group[:n])

		b.mu.Lock()

		for i, l := range group[:n] {
			if err == nil {
				b.sent[l.at] = sent[i]
			}
		}

		if err != nil {
			for _, l := range group {
				b.failed.Fail(l.at, err)
			}

			if n == 1 && errors.Is(err, ErrTooLarge) { // by itself, and only it
				b.failed.Fail(group[0].at, pipeline.Reject(err))
			}
		}

		b.mu.Unlock()

		if err != nil {
			return
		}

		group = group[n:]
	}
}

// together returns how many letters of a group go into its first request.
func (b *batch) together(group []*letter) int {
	first := group[0]
	if first.alone {
		return 1
	}

	size := first.size(b.topic)
	rest := slices.IndexFunc(group[1:], func(l *letter) bool {
		size += l.size(b.topic)

		return l.alone || l.born != first.born || size > maxBatch
	})

	if rest < 0 {
		return len(group)
	}

	return rest + 1
}
