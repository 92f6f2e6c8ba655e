package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
)

// Broker is an open broker. It is safe for concurrent use. Whoever opened it closes it.
type Broker struct {
	options Options
	dir     *directory
	store   *store // guarded by using
	log     *zap.Logger
	// serials gives out numbers that were never given out before, by any process that had the directory: epochs of
	// leases, and the order of delayed messages that are due at the same time.
	serials atomic.Uint64
	readers sync.Pool // of *reader

	// creating is held by who makes a topic or a group.
	creating sync.Mutex
	mu       sync.RWMutex
	topics   map[string]*topic  // guarded by mu
	groups   map[string]*group  // guarded by mu
	queues   map[queueID]*queue // guarded by mu

	// using is held for reading by every call while it is inside of the store, and for writing by Close and by who replaces
	// the store.
	using   sync.RWMutex
	closed  bool // guarded by using
	closing chan struct{}
	life    context.Context //nolint:containedctx // ends with closing, for the broker's own goroutines
	running sync.WaitGroup
	delays  delays
	// pruning is held by who prunes.
	pruning sync.Mutex
	counts  counts
}

var (
	_ consumer.Broker    = (*Broker)(nil)
	_ consumer.Publisher = (*Broker)(nil)
)

// Open opens the broker in a directory, or makes one. It reads the log of the last run, which takes the longer the less
// cleanly that run ended. The errors are [ErrInUse], [ErrForeign], [ErrNewer], [ErrDamaged], or what the disk said.
func Open(o Options) (*Broker, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}

	fs := o.FS
	if fs == nil {
		fs = vfs.Default
	}

	dir, err := openDirectory(fs, o.Dir)
	if err != nil {
		return nil, err
	}

	o.Dir = dir.path
	guard := newGuard(o, fs)

	store, err := openStore(guard, dir, !o.NoSync, o.Logger)
	if err != nil {
		return nil, errors.Join(err, dir.close())
	}

	b := newBroker(o, dir, store)

	err = b.load()
	if err == nil && dir.fresh {
		err = errors.Join(store.newLog(), dir.settle())
	}

	if err != nil {
		return nil, errors.Join(err, store.close(), dir.close())
	}

	b.start()

	return b, nil
}

func newBroker(o Options, dir *directory, s *store) *Broker {
	return &Broker{
		options: o, dir: dir, store: s, log: o.Logger,
		readers: sync.Pool{New: func() any { return new(reader) }},
		topics:  make(map[string]*topic),
		groups:  make(map[string]*group),
		queues:  make(map[queueID]*queue),
		closing: make(chan struct{}),
		delays:  newDelays(),
	}
}

// load reads what the broker keeps in memory, and counts the opening. Topics, queues and groups that are known stay the same.
func (b *Broker) load() error {
	b.mu.Lock()
	defer b.mu.Unlock()

	d := new(decoder)

	err := b.store.scanKind(kindTopic, "topics", func(key, value []byte) error {
		id, n, err := d.topic(key, value)
		if err != nil {
			return err
		}

		if name := string(key[1:]); b.topics[name] == nil {
			b.addTopic(newTopic(name, id, n))
		}

		return nil
	})
	if err != nil {
		return err
	}

	if err := b.loadQueues(d); err != nil {
		return err
	}

	err = b.store.scanKind(kindGroup, "groups", func(key, value []byte) error {
		id, err := d.single(key, value)

		if name := string(key[1:]); err == nil && b.groups[name] == nil {
			b.groups[name] = newGroup(b, name, id)
		}

		return err
	})
	if err != nil {
		return err
	}

	return b.countOpening(d)
}

func (b *Broker) loadQueues(d *decoder) error {
	found := 0

	err := b.store.scanKind(kindQueue, "queues", func(key, value []byte) error {
		state, err := d.queueState(key, value)
		if err != nil {
			return err
		}

		if q := b.queues[parseQueueID(key[1:])]; q != nil {
			q.begin(state)
			found++
		}

		return nil
	})
	if err == nil && found < len(b.queues) {
		err = fmt.Errorf("%w: %s: %d of %d queues are missing; bring back a copy of the directory",
			ErrDamaged, b.options.Dir, len(b.queues)-found, len(b.queues))
	}

	return err
}

// countOpening makes the serials, and the numbers of writes, of this opening greater than those of all openings before.
func (b *Broker) countOpening(d *decoder) error {
	var last uint32

	key := []byte{kindOpenings}

	_, err := b.store.get(key, func(value []byte) (err error) {
		last, err = d.single(key, value)

		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %s: reading the count of openings: %w; bring back a copy of the directory",
			ErrDamaged, b.options.Dir, err)
	}

	b.store.writes = uint64(last+1) << openingShift // nobody else writes yet

	tx, err := b.store.begin(context.Background())
	if err != nil {
		return err
	}
	defer tx.abort()

	if err := tx.set(key, func(e *encoder) ([]byte, error) { return e.single(key, last+1) }); err != nil {
		return err
	}

	b.serials.Store(uint64(last+1) << openingShift)

	return tx.commit()
}

// start starts the broker's own goroutines.
func (b *Broker) start() {
	ctx, cancel := context.WithCancel(context.Background())
	b.life = ctx

	b.running.Go(func() {
		<-b.closing
		cancel()
	})
	b.running.Go(b.moveDue)

	if !b.options.NoSync {
		b.store.guard.heals.Store(true)
		b.running.Go(b.keepHealing)
	}

	if b.options.prunes() {
		b.running.Go(b.keepPruning)
	}
}

// Close ends every call that waits with [consumer.ErrClosed], waits for the ones that are writing, and gives the directory
// free. After a failure of the disk it returns an [ErrFailed]. Further calls do nothing.
func (b *Broker) Close() error {
	b.using.Lock()

	if b.closed {
		b.using.Unlock()

		return nil
	}

	b.closed = true
	close(b.closing)
	b.using.Unlock()

	for _, g := range b.everyGroup() {
		g.stop()
	}

	b.running.Wait()

	return errors.Join(b.store.close(), b.dir.close())
}

// enter must be called before the store is used, and leave after; a nil error is the right to.
func (b *Broker) enter() error {
	b.using.RLock()

	err := b.store.guard.failure()
	if b.closed {
		err = consumer.ErrClosed
	}

	if err != nil {
		b.using.RUnlock()
	}

	return err
}

func (b *Broker) leave() { b.using.RUnlock() }

// guard returns the guard of the present store, for those who wait outside of it.
func (b *Broker) guard() *guard {
	b.using.RLock()
	defer b.using.RUnlock()

	return b.store.guard
}

// everyGroup returns the groups that there are.
func (b *Broker) everyGroup() []*group {
	b.mu.RLock()
	defer b.mu.RUnlock()

	return slices.Collect(maps.Values(b.groups))
}

// serial returns the next serial number.
func (b *Broker) serial() uint64 { return b.serials.Add(1) }
