package embedded

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/pipeline"
)

// TestKilledProcessLosesNothing kills a publishing process at random moments: what it was told is stored is there, once,
// and offsets have no gaps.
func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()

	const kills = 6

	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()

	t.Logf("seed %d", seed)

	var acknowledged []string

	for range kills {
		process, _, lines := child(t, rolePublish, dir)
		killer := time.AfterFunc(time.Duration(rng.Int64N(int64(300*time.Millisecond))), func() { _ = process.Process.Kill() })

		for lines.Scan() {
			if batch, n, _ := strings.Cut(lines.Text(), " "); n == "20" { // the last line may be cut short
				for i := range 20 {
					acknowledged = append(acknowledged, fmt.Sprintf("%s-%d", batch, i))
				}
			}
		}

		_ = process.Wait() // it was killed
		killer.Stop()
	}

	w := openWorld(t, Options{Dir: dir})
	m := w.join("g", "t")
	seen := make(map[string]int)

	for _, l := range m.await("t", 3) {
		for _, message := range m.all(l) {
			seen[message.ID]++
		}
	}

	for _, id := range acknowledged {
		if seen[id] != 1 {
			t.Fatalf("the acknowledged %s is there %d times", id, seen[id])
		}
	}

	t.Logf("%d acknowledged, %d stored", len(acknowledged), len(seen))

	if len(acknowledged) == 0 {
		t.Error("nothing was acknowledged before a kill")
	}
}

// TestPowerCutLosesNothing cuts the power after each of some acknowledged writes; of what was not synced a part is there.
func TestPowerCutLosesNothing(t *testing.T) {
	t.Parallel()

	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))

	t.Logf("seed %d", seed)

	const writes = 40

	disk := vfs.NewCrashableMem()
	w := openWorld(t, Options{Dir: flakyDir, FS: disk})
	w.topic("t", 2)

	padding := strings.Repeat("x", 20_000)

	var acknowledged []string

	for i := range writes {
		messages := []*pipeline.Message{{Body: fmt.Appendf(nil, "%d-0 %s", i, padding)}, {Body: fmt.Appendf(nil, "%d-1", i)}}
		w.publish("t", messages...)
		acknowledged = append(acknowledged, bodies(messages)...)

		cut := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		wantStored(t, fmt.Sprintf("a power cut after write %d", i), cut, slices.Clone(acknowledged))
	}
}
