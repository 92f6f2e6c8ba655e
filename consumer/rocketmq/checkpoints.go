package rocketmq

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

const (
	// lookBack is how many of a queue's newest checkpoint records are looked at. A former owner whose write was late can
	// have left some behind the one that counts.
	lookBack = 8
	// beyond is an offset that no queue has.
	beyond pipeline.Offset = 1 << 60
)

// checkpointRecord is the body of a message in a checkpoint topic: a checkpoint that its group stored, or was about to, in
// one queue. Done holds gaps and lengths in turn, each from where the last one ended, beginning at Next.
type checkpointRecord struct {
	Group string          `json:"group"`
	Topic string          `json:"topic"`
	Next  pipeline.Offset `json:"next"`
	Done  []int64         `json:"done,omitempty"`
}

// tail is what is known of a queue's newest checkpoint records.
type tail struct {
	// records are the newest, in their order; those that are written are not added.
	records []consumer.Checkpoint
	// highest is the highest Next of all of them, -1 without any. A checkpoint at or below it needs a record, so that no
	// older one can be taken for it.
	highest pipeline.Offset
}

// checkpoint returns the newest one that was stored with an offset, and whether there is a record of it. An offset that no
// record names counts alone.
func (t *tail) checkpoint(next pipeline.Offset) (c consumer.Checkpoint, recorded bool) {
	for _, c := range slices.Backward(t.records) {
		if c.Next == next {
			return c, true
		}
	}

	return consumer.Checkpoint{Next: next}, false
}

// checkpointTopic returns the name of the topic that has the checkpoint records of a topic's queues, each in the queue with
// the same number at the same broker.
func checkpointTopic(group, topic string) string {
	const most = 80 // leaves room for a namespace below the brokers' limit

	sum := sha256.Sum256([]byte(group + "\n" + topic))

	return routes.Checkpoints + group[:min(len(group), most)] + "_" + hex.EncodeToString(sum[:4])
}

func (m *member) checkpointQueue(q pipeline.Queue) pipeline.Queue {
	q.Topic = checkpointTopic(m.group, q.Topic)

	return q
}

// readTail reads the newest checkpoint records of a queue.
func (m *member) readTail(ctx context.Context, q pipeline.Queue) (*tail, error) {
	t := &tail{highest: -1}
	if m.options.OffsetsOnly {
		return t, nil
	}

	addr, err := m.routes.Master(ctx, q)
	if err != nil {
		return nil, err //nolint:wrapcheck // of the same family
	}

	place := m.checkpointQueue(q)

	ends, err := m.pullFrom(ctx, addr, place, pullWish{from: beyond, messages: 1})
	if code := routes.Code(err); code == remoting.TopicNotExist || code == remoting.InvalidParameter {
		return t, nil // nothing was ever written there
	}

	for from := max(ends.first, ends.end-lookBack); err == nil && from < ends.end; {
		var p pulled

		p, err = m.pullFrom(ctx, addr, place, pullWish{from: from, messages: lookBack})
		if err == nil && p.next <= from {
			err = fmt.Errorf("a pull from %d goes on at %d", from, p.next)
		}

		if err == nil {
			err = m.addTo(t, q.Topic, p.body, from)
		}

		from = p.next
	}

	if err != nil {
		return nil, fmt.Errorf("rocketmq: %s: read its checkpoint: %w", q, err)
	}

	return t, nil
}

// addTo adds the checkpoints of the records in the answer to a pull.
func (m *member) addTo(t *tail, topic string, body []byte, from pipeline.Offset) error {
	records, _, err := m.broker.decoder.Decode(body, int64(from))
	if err != nil {
		return err //nolint:wrapcheck // the caller says where
	}

	for _, r := range records {
		c, err := decodeCheckpoint(m.group, topic, r.Body)
		if err != nil {
			return err
		}

		t.records = append(t.records, c)
		t.highest = max(t.highest, c.Next)
	}

	return nil
}

// keep makes sure that what Stored returns with the checkpoint's offset is the checkpoint. It writes a record when there is
// more to say than the offset does, or when an older record could be taken for it. lease.committing is held.
func (m *member) keep(ctx context.Context, held *lease, c consumer.Checkpoint) error {
	if m.options.OffsetsOnly {
		return nil
	}

	if held.tail == nil {
		t, err := m.readTail(ctx, held.Queue)
		if err != nil {
			return err
		}

		held.tail = t
	}

	if len(c.Done) == 0 && c.Next > held.tail.highest && !m.doubts(c.Next) {
		return nil
	}

	if err := m.writeCheckpoint(ctx, held.Queue, c); err != nil {
		return fmt.Errorf("rocketmq: %s: write its checkpoint (or do without: Options.OffsetsOnly): %w", held.Queue, err)
	}

	held.tail.highest = max(held.tail.highest, c.Next)

	return nil
}

// writeCheckpoint writes a record, after making the topic where there is none or it is too small.
func (m *member) writeCheckpoint(ctx context.Context, q pipeline.Queue, c consumer.Checkpoint) error {
	addr, err := m.routes.Master(ctx, q)
	if err != nil {
		return err //nolint:wrapcheck // of the same family
	}

	queues := q.ID + 1
	if known := m.routes.Cached(q.Topic); known != nil {
		queues = max(queues, known.QueuesAt(q.Broker))
	}

	place := m.checkpointQueue(q)
	l := letter{topic: place.Topic, queue: q.ID, queues: queues, body: encodeCheckpoint(m.group, q.Topic, c)}

	at, err := m.send(ctx, addr, l)

	// A queue that there is not is code 29, and 1 in version 4.
	switch routes.Code(err) {
	case remoting.TopicNotExist, remoting.InvalidParameter, remoting.SystemError:
		if err := m.createTopic(ctx, addr, place.Topic, queues); err != nil {
			return err
		}

		at, err = m.send(ctx, addr, l)
	}

	if err != nil {
		return err
	}

	return m.awaitRecord(ctx, addr, place, at)
}

// awaitRecord waits until a record that was written can be read: a broker answers before it has noted a message in its
// queue, some milliseconds mostly, and the next owner of the queue must find it. No pull is held for it: a message that comes
// while a broker makes up its mind to hold one is not noticed for 5 s.
func (m *member) awaitRecord(ctx context.Context, addr string, place pipeline.Queue, at pipeline.Offset) error {
	ctx, cancel := context.WithTimeout(ctx, m.options.CallTimeout)
	defer cancel()

	for {
		p, err := m.pullFrom(ctx, addr, place, pullWish{from: at, messages: 1})
		if err != nil || p.next > at {
			return err
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func encodeCheckpoint(group, topic string, c consumer.Checkpoint) []byte {
	r := checkpointRecord{Group: group, Topic: topic, Next: c.Next, Done: make([]int64, 0, 2*len(c.Done))}
	at := c.Next

	for _, run := range c.Done {
		r.Done = append(r.Done, int64(run.From-at), run.Len())
		at = run.To
	}

	return encode(r)
}

// decodeCheckpoint reads a record of a group and a topic. Whatever the bytes are, what it returns is valid.
func decodeCheckpoint(group, topic string, body []byte) (consumer.Checkpoint, error) {
	var r checkpointRecord
	if err := json.Unmarshal(body, &r); err != nil {
		return consumer.Checkpoint{}, fmt.Errorf("a record that is no checkpoint: %w", err)
	}

	if r.Group != group || r.Topic != topic {
		return consumer.Checkpoint{}, fmt.Errorf("a checkpoint of group %q and topic %q", r.Group, r.Topic)
	}

	if len(r.Done)%2 != 0 {
		return consumer.Checkpoint{}, errors.New("a checkpoint with half a run")
	}

	c := consumer.Checkpoint{Next: r.Next}
	at := c.Next

	for i := 0; i < len(r.Done); i += 2 {
		run := consumer.Run{From: at + pipeline.Offset(r.Done[i])}
		run.To = run.From + pipeline.Offset(r.Done[i+1])
		c.Done = append(c.Done, run)
		at = run.To
	}

	return c, c.Validate() //nolint:wrapcheck // the caller names the queue
}
