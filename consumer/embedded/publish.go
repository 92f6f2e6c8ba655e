package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

const (
	// maxWrite is how many bytes of messages one Publish takes: a Pebble batch ends at 4 GiB, and a write of this size
	// takes seconds already.
	maxWrite = 1 << 30
	// recordOverhead is more than a record takes beside the bytes of its message.
	recordOverhead = 256
)

// Publish appends messages to a topic, in one write: after an error either all or none of them are there. Messages with
// the same non-empty key go to the same queue, in order; those without a key go to the queues in turn. It returns nil when
// they are durable (see Options.NoSync). Publishers that come together share one fsync. In a group's retry topic, messages
// keep the topic that their property [consumer.PropOriginTopic] names.
//
// The error is a [consumer.UnknownTopicError], an [ErrDiskFull] when Options.KeepFree is reached, [ErrTooLarge] above 1 GiB
// of messages, [ErrFailed], or [consumer.ErrClosed].
func (b *Broker) Publish(ctx context.Context, topic string, messages []*pipeline.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	if err := b.enter(); err != nil {
		return err
	}
	defer b.leave()

	t, err := b.topic(topic)
	if err != nil || len(messages) == 0 {
		return err
	}

	if err := errors.Join(checkSize(messages), b.checkSpace()); err != nil {
		return err
	}

	tx, err := b.store.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.abort()

	retries := strings.HasPrefix(topic, consumer.RetryTopic(""))
	now := time.Now().UnixNano()

	for _, p := range t.place(messages) {
		r := recordOf(p.message, now)
		if retries {
			r.topic = r.props[consumer.PropOriginTopic]
		}

		if err := tx.append(p.queue, &r, now); err != nil {
			return err
		}
	}

	return tx.commit()
}

// placed is a message with the queue that it goes to.
type placed struct {
	message *pipeline.Message
	queue   *queue
}

// place decides where messages go. They are returned queue by queue, since Pebble is much faster with keys in order.
func (t *topic) place(messages []*pipeline.Message) []placed {
	all := make([]placed, len(messages))
	for i, m := range messages {
		all[i] = placed{message: m, queue: t.queueFor(m.Key)}
	}

	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.queue.id.queue, b.queue.id.queue) })

	return all
}

func checkSize(messages []*pipeline.Message) error {
	size := 0

	for i, m := range messages {
		if m == nil {
			return fmt.Errorf("embedded: publishing: message %d of %d is nil", i, len(messages))
		}

		size += m.Size() + recordOverhead + 2*recordOverhead*len(m.Props)
	}

	if size > maxWrite {
		return fmt.Errorf("%w: %d messages of %d bytes; the limit is %d", ErrTooLarge, len(messages), size, maxWrite)
	}

	return nil
}

// checkSpace refuses to fill the disk up. A file system that cannot tell how full it is passes.
func (b *Broker) checkSpace() error {
	if b.options.KeepFree < 0 {
		return nil
	}

	usage, err := b.store.guard.GetDiskUsage(b.options.Dir)
	if err != nil || usage.TotalBytes == 0 || usage.AvailBytes >= uint64(b.options.KeepFree) {
		return nil //nolint:nilerr // see above
	}

	return fmt.Errorf("%w: %s: %d bytes are left, and Options.KeepFree keeps %d: free some space; nothing was published: %w",
		ErrDiskFull, b.options.Dir, usage.AvailBytes, b.options.KeepFree, syscall.ENOSPC)
}
