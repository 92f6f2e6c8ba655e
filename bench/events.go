package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// newEvents returns a thousand different JSON events of about 1 KiB, as monitoring and commerce have them: some twenty short
// fields, an object, a list, and one long text. The order of the fields differs from one to the next.
func newEvents() [][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	events := make([][]byte, 1000)

	for i := range events {
		fields := []string{
			fmt.Sprintf(`"id":"us7000%04x"`, random.IntN(1<<16)), `"type":"earthquake"`,
			fmt.Sprintf(`"mag":%.1f`, random.Float64()*8),
			`"magType":"mww"`, fmt.Sprintf(`"place":"%d km SSE of Kainantu, Papua New Guinea"`, random.IntN(300)),
			`"time":1767225600123`, `"updated":1767229200456`, `"tz":null`, `"url":"https://example.org/events/us7000abcd"`,
			`"felt":12`, `"cdi":4.3`, `"mmi":5.125`, `"alert":"green"`, `"status":"reviewed"`, `"tsunami":0`,
			`"sig":452`, `"net":"us"`, `"code":"7000abcd"`, `"geometry":{"type":"Point","coordinates":[146.0123,-6.5432,35.5]}`,
			`"types":["dyfi","shakemap","moment"]`,
			`"region":"Eastern Highlands"`, `"detail":"` + strings.Repeat("lorem ipsum dolor ", 23) + `"`,
		}
		random.Shuffle(len(fields), func(a, b int) { fields[a], fields[b] = fields[b], fields[a] })
		events[i] = []byte("{" + strings.Join(fields, ",") + "}")
	}

	return events
}

const eventBatch = 256

// stream is a broker of one queue in memory that makes a message of an event only when it is pulled, and tells when all of them
// are committed.
type stream struct {
	consumer.Member // what a job that never fails does not call

	events [][]byte
	lease  consumer.Lease
	end    pipeline.Offset
	done   chan struct{}
	isDone atomic.Bool
}

var _ consumer.Member = (*stream)(nil)

func newStream(events [][]byte, n int) *stream {
	return &stream{
		events: events, lease: consumer.Lease{Queue: pipeline.Queue{Topic: "events"}, Epoch: 1}, end: pipeline.Offset(n),
		done: make(chan struct{}),
	}
}

// Join makes the caller the only member.
func (s *stream) Join(context.Context, consumer.Subscription) (consumer.Member, error) { return s, nil }

// Assigned returns the one lease, and nothing new after that.
func (s *stream) Assigned(ctx context.Context, known uint64) (consumer.Assignment, error) {
	if known == 0 {
		return consumer.Assignment{Generation: 1, Leases: []consumer.Lease{s.lease}}, nil
	}

	<-ctx.Done()

	return consumer.Assignment{}, ctx.Err()
}

// Stored says that nothing has been read.
func (s *stream) Stored(context.Context, pipeline.Queue) (consumer.Checkpoint, error) {
	return consumer.Checkpoint{}, nil
}

// Pull makes the next messages, or waits for ctx at the end.
func (s *stream) Pull(ctx context.Context, _ consumer.Lease, from pipeline.Offset, l consumer.Limit) (consumer.Batch, error) {
	batch := s.batch(from, l.Messages)
	if len(batch) == 0 {
		<-ctx.Done()

		return consumer.Batch{}, ctx.Err()
	}

	return consumer.Batch{Messages: batch, Next: from + pipeline.Offset(len(batch)), End: s.end}, nil
}

func (s *stream) batch(from pipeline.Offset, limit int) []*pipeline.Message {
	batch := make([]*pipeline.Message, min(limit, eventBatch, int(s.end-from)))
	room := make([]pipeline.Message, len(batch))

	for i := range batch {
		at := from + pipeline.Offset(i)
		room[i].ID, room[i].Topic, room[i].Body = "id", "events", s.events[int(at)%len(s.events)]
		room[i].Origin = pipeline.Origin{Queue: s.lease.Queue, Offset: at, Epoch: 1, Delivery: 1}
		batch[i] = &room[i]
	}

	return batch
}

// Commit notes the end.
func (s *stream) Commit(_ context.Context, _ consumer.Lease, c consumer.Checkpoint) error {
	if c.Next >= s.end && !s.isDone.Swap(true) {
		close(s.done)
	}

	return nil
}

// Release ends nothing.
func (s *stream) Release(context.Context, consumer.Lease) error { return nil }

// Leave ends nothing.
func (s *stream) Leave(context.Context) error { return nil }
