package embedded

import (
	"errors"
	"time"

	"go.uber.org/zap"
)

// keepHealing goes on after a full disk as soon as there is room, until the broker closes. Any other failure of the disk is
// for people to look at.
func (b *Broker) keepHealing() {
	for {
		guard := b.guard()

		select {
		case <-b.closing:
			return
		case <-guard.failed:
		}

		b.log.Error("embedded: the disk refuses a write", zap.String("dir", b.options.Dir), zap.Error(guard.failure()))

		if !errors.Is(guard.failure(), ErrDiskFull) || !b.awaitRoom(guard) {
			return
		}

		b.heal()
	}
}

// awaitRoom waits until the disk has as much room as the failure asks for; false means that the broker closes. A file system
// that cannot tell how full it is, is tried.
func (b *Broker) awaitRoom(g *guard) bool {
	ticker := time.NewTicker(b.options.healEvery)
	defer ticker.Stop()

	for {
		select {
		case <-b.closing:
			return false
		case <-ticker.C:
		}

		usage, err := g.GetDiskUsage(b.options.Dir)
		if err != nil || usage.TotalBytes == 0 || usage.AvailBytes >= uint64(g.need) {
			return true
		}
	}
}

// heal opens the store again. All that was acknowledged is on the disk, since nobody was told before it was synced; what
// Pebble has in memory is left out, and what it was about to write is cut off from the log as after a crash. Leases stay.
func (b *Broker) heal() {
	b.using.Lock()
	defer b.using.Unlock()

	if b.closed {
		return
	}

	_ = b.store.close() // says what everybody was told

	guard := newGuard(b.options, b.dir.fs)
	guard.heals.Store(true)

	opened, err := openStore(guard, b.dir, true, b.log)
	if err == nil {
		b.store = opened
		if err = b.load(); err != nil {
			err = errors.Join(err, opened.close())
		}
	}

	if err != nil {
		guard.fail("opening it again", err)
		b.store = &store{guard: guard}

		return
	}

	b.delays.add(0) // which looks for all that is due
	b.log.Info(healedText, zap.String("dir", b.options.Dir))
}

// healedText is logged when the broker goes on.
const healedText = "embedded: the disk has room again, and the broker goes on"
