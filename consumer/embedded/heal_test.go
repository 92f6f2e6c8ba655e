package embedded

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// healing returns a logger and a Go channel that gets a value whenever the broker goes on after a full disk.
func healing() (*zap.Logger, <-chan struct{}) {
	const most = 100 // in one test

	healed := make(chan struct{}, most)
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(discard{}), zap.InfoLevel)

	return zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if e.Message == healedText {
			healed <- struct{}{}
		}

		return nil
	})), healed
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// fullDisk is a broker on a disk that fills up, with what was acknowledged to publishers, and where a group is.
type fullDisk struct {
	*world

	disk         *flakyDisk
	healed       <-chan struct{}
	what         string
	acknowledged []string
	m            *participant
	l            consumer.Lease
	confirmed    pipeline.Offset
}

// sayRoom is what a refusal has to say of the place and the cure.
var sayRoom = regexp.MustCompile(flakyDir + `:.* goes on by itself when [1-9]\d{3,} bytes are free`)

// wantFull checks a refusal; it says where, and what to do.
func (f *fullDisk) wantFull(err error) {
	f.t.Helper()

	if !errors.Is(err, ErrDiskFull) || !errors.Is(err, ErrFailed) || !sayRoom.MatchString(fmt.Sprint(err)) {
		f.t.Fatalf("%s: %v, want a full disk, its directory and how many bytes must be free", f.what, err)
	}
}

// round publishes and commits, and waits through a full disk, which gets room once it is noticed.
func (f *fullDisk) round(n int, mend bool) (refused bool) {
	f.t.Helper()

	messages := make([]*pipeline.Message, 20)
	for i := range messages {
		messages[i] = &pipeline.Message{Body: fmt.Appendf(nil, "%d-%d %s", n, i, strings.Repeat("x", 1000))}
	}

	err := f.Publish(f.t.Context(), "t", messages)
	if err == nil {
		f.acknowledged = append(f.acknowledged, bodies(messages)...)
		err = f.m.Commit(f.t.Context(), f.l, consumer.Checkpoint{Next: f.confirmed + 1})
	}

	if err == nil {
		f.confirmed++

		return false
	}

	f.wantFull(err)

	if mend {
		f.disk.mend()
	}

	<-f.healed

	c, err := f.m.Stored(f.t.Context(), f.l.Queue)
	if errors.Is(err, consumer.ErrNoCheckpoint) {
		c, err = consumer.Checkpoint{}, nil
	}

	if err != nil || c.Next != f.confirmed && c.Next != f.confirmed+1 {
		f.t.Fatalf("%s: at %v, %v; want %d, which was confirmed, or one more", f.what, c, err, f.confirmed)
	}

	f.confirmed = c.Next

	return true
}

// TestFullDiskIsWaitedFor fills the disk at any write of a run, for so many writes, or until a publisher has met it. The
// broker goes on under the same leases without anybody's doing, has all that it acknowledged, and leaves nothing torn.
func TestFullDiskIsWaitedFor(t *testing.T) {
	t.Parallel()

	const (
		step   = 15 // every write would take a minute with the race detector
		rounds = 40
	)

	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)

	var refusals int

	for first := seed % step; first < 90; first += step {
		for _, writes := range []int64{1, 7, 1 << 40} {
			disk := newFlakyDisk()
			log, healed := healing()
			f := &fullDisk{
				world: openWorld(t, Options{Dir: flakyDir, FS: disk, KeepFree: 1 << 10, Logger: log, healEvery: time.Millisecond}),
				disk:  disk, healed: healed, what: fmt.Sprintf("write %d fails %d times", first, writes),
			}
			f.topic("t", 2)

			f.m = f.join("g", "t")
			f.l = f.m.await("t", 2)[0]

			disk.breakAt(disk.writes.Load()+first, writes)

			for n := range rounds {
				if f.round(n, writes > 7) {
					refusals++
				}
			}

			disk.mend()

			for f.round(rounds, false) { // what the last rounds have filled is noticed by the next
				refusals++
			}

			if f.m.pull(f.l, 0, 1).Next != 1 {
				t.Errorf("%s: the lease has ended", f.what)
			}

			cut := disk.memory.CrashClone(vfs.CrashCloneCfg{})
			f.close()
			wantStored(t, f.what, disk, f.acknowledged)
			wantStored(t, f.what+", then a power cut", cut, f.acknowledged)
		}
	}

	t.Logf("%d refusals", refusals)

	if refusals == 0 {
		t.Error("the disk was never full")
	}
}
