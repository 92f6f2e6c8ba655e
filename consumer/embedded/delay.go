package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// maxMoved is how many delayed messages move in one write.
	maxMoved = 256
	// moveAgain is the wait after a failure to move them.
	moveAgain = 5 * time.Second
	never     = int64(math.MaxInt64)
)

// delays tells the goroutine that moves delayed messages about new ones.
type delays struct {
	// added is the earliest due time that was added since the goroutine looked last, or never. It lets the goroutine look
	// from there and not from the beginning, where the store keeps the traces of what has moved.
	added *atomic.Int64
	wake  chan struct{}
}

func newDelays() delays {
	d := delays{added: new(atomic.Int64), wake: make(chan struct{}, 1)}
	d.added.Store(never)

	return d
}

func (d delays) add(due int64) {
	for {
		earliest := d.added.Load()
		if due >= earliest || d.added.CompareAndSwap(earliest, due) {
			break
		}
	}

	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// moveDue moves delayed messages to their queues when they are due, until the broker closes. It sleeps until the earliest
// one is.
func (b *Broker) moveDue() {
	earliest := int64(0)
	timer := time.NewTimer(0)

	defer timer.Stop()

	for {
		select {
		case <-b.closing:
			return
		case <-b.delays.wake:
		case <-timer.C:
		}

		next, err := b.move(min(earliest, b.delays.added.Swap(never)))
		earliest = next

		switch {
		case err != nil:
			if b.isClosed() {
				return
			}

			if !errors.Is(err, ErrFailed) { // which is told once
				b.log.Error("embedded: delayed messages cannot be moved", zap.String("dir", b.options.Dir), zap.Error(err))
			}

			timer.Reset(moveAgain)
		case next != never:
			timer.Reset(time.Until(time.Unix(0, next)))
		}
	}
}

// move moves what is due, looking from a due time on, and returns the due time to look from next.
func (b *Broker) move(from int64) (int64, error) {
	if err := b.enter(); err != nil {
		return from, err
	}
	defer b.leave()

	tx, err := b.store.begin(b.life)
	if err != nil {
		return from, err
	}
	defer tx.abort()

	r := b.readers.Get().(*reader) //nolint:forcetypeassert // the pool has nothing else
	defer b.readers.Put(r)

	next, moved := never, 0
	now := time.Now().UnixNano()

	err = b.store.scan(delayedKey(from, 0, queueID{}), kindEnd(kindDelayed), func(key, value []byte) (bool, error) {
		if due := int64(binary.BigEndian.Uint64(key[1:])); due > now || moved == maxMoved {
			next = due

			return false, nil
		}

		moved++

		return true, b.moveOne(tx, r, key, value, now)
	})
	if err == nil && moved > 0 {
		err = tx.commit()
	}

	if err != nil {
		return from, err
	}

	return next, nil
}

// moveOne adds one move to a write. A record that cannot be read moves as it is, so that whoever pulls it is told.
func (b *Broker) moveOne(tx *tx, r *reader, key, value []byte, now int64) error {
	b.mu.RLock()
	q := b.queues[parseQueueID(key[delayedKeyLen-queueIDLen:])]
	b.mu.RUnlock()

	if q == nil {
		return fmt.Errorf("%w: a delayed message belongs to a queue that does not exist", ErrDamaged)
	}

	var f fields

	err := r.dec.record(key, value, &f)
	if err == nil {
		moved := f.record()
		err = tx.append(q, &moved, now)
	} else {
		b.log.Error("embedded: a delayed message is damaged", zap.Stringer("queue", q.name), zap.Error(err))

		err = tx.appendRaw(q, value)
	}

	return errors.Join(err, tx.batch.Delete(key, nil))
}
