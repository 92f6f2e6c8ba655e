package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"
)

// store is the Pebble database of a broker with one writer at a time. Who writes holds the turn only until his batch is
// in the log and visible; he waits for the disk after giving it back, so writers that come together share one fsync.
type store struct {
	// db is nil when the guard has failed and nothing could be opened since.
	db    *pebble.DB
	guard *guard
	sync  bool
	// turn holds the right to write: a Go channel and not a mutex, so that waiting for it ends with a context.
	turn chan *encoder
	// writes counts the writes that were begun, with the count of openings in its upper half. It belongs to who holds the turn.
	writes uint64
	// synced is the last of them that is known to be durable, as are those before it.
	synced atomic.Uint64
}

// openStore opens or makes the database.
func openStore(g *guard, dir *directory, sync bool, log *zap.Logger) (*store, error) {
	o := pebbleOptions(g, log)
	o.ErrorIfNotExists = !dir.fresh

	path := g.PathJoin(dir.path, dirPebble)
	if !dir.fresh {
		if err := checkLogs(g.FS, path); err != nil {
			return nil, err
		}
	}

	db, err := pebble.Open(path, o)
	if failed := g.failure(); err == nil && failed != nil {
		err = errors.Join(failed, db.Close())
	}

	switch {
	case err == nil:
		s := &store{db: db, guard: g, sync: sync, turn: make(chan *encoder, 1)}
		s.turn <- newEncoder()

		return s, nil
	case pebble.IsCorruptionError(err), errors.Is(err, pebble.ErrDBDoesNotExist):
		return nil, fmt.Errorf("%w: %s: %w; bring back a copy of the directory", ErrDamaged, dir.path, err)
	default:
		return nil, fmt.Errorf("embedded: opening %s: %w", dir.path, err)
	}
}

// pebbleOptions trades memory for fewer and larger files: 32 MiB of cache, and up to 128 MiB of messages that are in the log
// and not in a table yet. The sizes are guesses that did well in the benchmarks.
func pebbleOptions(g *guard, log *zap.Logger) *pebble.Options {
	o := &pebble.Options{
		FS:                          g,
		FormatMajorVersion:          pebble.FormatNewest,
		Logger:                      pebbleLog{log: log.Sugar(), guard: g},
		CacheSize:                   32 << 20,
		TargetFileSizes:             [...]int64{16 << 20, 32 << 20, 64 << 20, 64 << 20, 64 << 20, 64 << 20, 64 << 20},
		MemTableSize:                32 << 20,
		MemTableStopWritesThreshold: 4,
		L0StopWritesThreshold:       32,
		EventListener: &pebble.EventListener{DataCorruption: func(i pebble.DataCorruptionInfo) {
			log.Error("embedded: a file of the store is damaged",
				zap.String("path", i.Path), zap.String("error", i.Details.Error()))
		}},
	}
	o.Experimental.SpanPolicyFunc = apart

	return o
}

// apart keeps the records of every queue in tables of their own. They are written in the order of their offsets, so such
// tables never overlap, and Pebble moves them to where they stay without writing them again.
func apart(key []byte) (policy pebble.SpanPolicy, end []byte, err error) {
	switch {
	case key[0] < kindRecord:
		return policy, []byte{kindRecord}, nil
	case key[0] == kindRecord && len(key) >= 1+queueIDLen:
		id := parseQueueID(key[1:])
		id.queue++ // there are far fewer than it can count

		return policy, id.appendTo([]byte{kindRecord}), nil
	default:
		return policy, nil, nil
	}
}

// newLog writes everything out of the log and starts another one. Pebble makes the first log of a new database in its
// oldest format, where damage to what was acknowledged looks like the end of the log; the second has the newest.
func (s *store) newLog() error {
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("embedded: starting the log: %w", err)
	}

	return s.guard.failure()
}

// close writes everything out of the log into tables, where every block has a checksum, and closes the database.
func (s *store) close() error {
	var err error
	if s.guard.failure() == nil {
		err = s.newLog()
	}

	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}

	err = errors.Join(err, s.guard.failure())
	if err != nil {
		return fmt.Errorf("embedded: closing %s: %w", s.guard.dir, err)
	}

	return nil
}

// get copies the value of a key to a decoder's reading function; it reports whether there is one.
func (s *store) get(key []byte, read func(value []byte) error) (bool, error) {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}

	if err != nil {
		return false, fmt.Errorf("embedded: reading: %w", err)
	}

	return true, errors.Join(read(value), closer.Close())
}

// scan calls see for each pair with from <= key < to, until it says false or fails.
func (s *store) scan(from, to []byte, see func(key, value []byte) (bool, error)) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return fmt.Errorf("embedded: reading: %w", err)
	}

	more := true
	for ok := it.First(); ok && more && err == nil; ok = it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			more, err = see(it.Key(), value)
		}
	}

	return errors.Join(err, it.Close())
}

// scanKind is scan over all keys of a kind; it names what could not be read.
func (s *store) scanKind(kind byte, what string, see func(key, value []byte) error) error {
	err := s.scan([]byte{kind}, kindEnd(kind), func(key, value []byte) (bool, error) { return true, see(key, value) })
	if err != nil {
		return fmt.Errorf("%w: %s: reading %s: %w; bring back a copy of the directory", ErrDamaged, s.guard.dir, what, err)
	}

	return nil
}

// tx is one atomic write. It is made by store.begin, filled by its owner, and ended by apply or abort.
type tx struct {
	store *store
	enc   *encoder
	batch *pebble.Batch
	// number is its number among all writes.
	number uint64
	// touched are the queues that it appends to, with the state that they will have.
	touched []touched
}

type touched struct {
	queue *queue
	state queueState
}

// begin waits for the turn to write.
func (s *store) begin(ctx context.Context) (*tx, error) {
	select {
	case enc := <-s.turn:
		if err := s.guard.failure(); err != nil {
			s.turn <- enc

			return nil, err
		}

		s.writes++
		t := &tx{store: s, enc: enc, batch: s.db.NewBatch(), number: s.writes}

		if err := t.batch.LogData(mark(t.number, s.synced.Load()), nil); err != nil {
			t.abort()

			return nil, fmt.Errorf("embedded: writing: %w", err)
		}

		return t, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// abort gives the turn back and forgets the write. After apply it does nothing.
func (t *tx) abort() {
	if t.enc == nil {
		return
	}

	t.store.turn <- t.enc
	t.enc = nil

	_ = t.batch.Close() // nothing of it was written
}

// apply puts the write into the log, makes it visible, and gives the turn back. It is not durable before wait, which must
// follow.
func (t *tx) apply() error {
	defer t.abort()

	for _, to := range t.touched {
		key := to.queue.id.stateKey()
		if err := t.set(key, func(e *encoder) ([]byte, error) { return e.queueState(key, to.state) }); err != nil {
			return err
		}
	}

	var err error
	if t.store.sync {
		err = t.store.db.ApplyNoSyncWait(t.batch, pebble.Sync)
	} else {
		err = t.store.db.Apply(t.batch, pebble.NoSync)
	}

	if err != nil {
		return fmt.Errorf("embedded: writing: %w", err)
	}

	for _, to := range t.touched {
		to.queue.next = to.state
	}

	t.store.turn <- t.enc
	t.enc = nil

	return nil
}

// wait returns when the applied write is durable, and shows readers what it appended.
func (t *tx) wait() error {
	var err error
	if t.store.sync {
		err = t.batch.SyncWait()
	}

	if err = errors.Join(err, t.batch.Close(), t.store.guard.failure()); err != nil {
		return fmt.Errorf("embedded: writing: %w", err)
	}

	if t.store.sync {
		t.store.markSynced(t.number)
	}

	for _, to := range t.touched {
		to.queue.show(to.state)
	}

	return nil
}

func (s *store) markSynced(number uint64) {
	for {
		last := s.synced.Load()
		if number <= last || s.synced.CompareAndSwap(last, number) {
			return
		}
	}
}

// commit is apply and wait.
func (t *tx) commit() error {
	if err := t.apply(); err != nil {
		return err
	}

	return t.wait()
}

// append adds a record to a queue and returns its offset.
func (t *tx) append(q *queue, r *record, now int64) error {
	to := t.touch(q)
	to.state.stored = max(to.state.stored, now)
	r.stored, r.pos = to.state.stored, to.state.endPos

	var key [recordKeyLen]byte

	size, err := t.enc.putRecord(t.batch, q.id.recordKey(key[:0], to.state.end), r)
	to.state.end++
	to.state.endPos += int64(size)

	return err
}

// appendRaw adds a value that is no record to a queue, where reading it is an error.
func (t *tx) appendRaw(q *queue, value []byte) error {
	to := t.touch(q)
	key := q.id.recordKey(nil, to.state.end)
	to.state.end++
	to.state.endPos += int64(len(value))

	return t.put(key, value)
}

// touch returns the state that a queue will have; the pointer is good until the next touch.
func (t *tx) touch(q *queue) *touched {
	for i := range t.touched {
		if t.touched[i].queue == q {
			return &t.touched[i]
		}
	}

	t.touched = append(t.touched, touched{queue: q, state: q.next})

	return &t.touched[len(t.touched)-1]
}

// set adds a value to the write.
func (t *tx) set(key []byte, encode func(*encoder) ([]byte, error)) error {
	value, err := encode(t.enc)
	if err != nil {
		return err
	}

	return t.put(key, value)
}

func (t *tx) put(key, value []byte) error {
	if err := t.batch.Set(key, value, nil); err != nil {
		return fmt.Errorf("embedded: writing: %w", err)
	}

	return nil
}

// pebbleLog hands Pebble's words to the log. What Pebble would end the process for ends the broker.
type pebbleLog struct {
	log   *zap.SugaredLogger
	guard *guard
}

var _ pebble.Logger = pebbleLog{}

// Infof logs at the level debug: Pebble reports every flush.
func (l pebbleLog) Infof(format string, args ...any) { l.log.Debugf(format, args...) }

// Errorf logs at the level error.
func (l pebbleLog) Errorf(format string, args ...any) { l.log.Errorf(format, args...) }

// Fatalf stops the broker.
func (l pebbleLog) Fatalf(format string, args ...any) {
	l.guard.fail("pebble", fmt.Errorf(format, args...))
	l.log.Errorf(format, args...)
}
