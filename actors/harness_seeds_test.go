package actors

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// defaultSeeds is how many runs TestSeeds makes when nobody says otherwise.
const defaultSeeds = 300

// TestSeeds runs random jobs under random faults in virtual time and checks I1 to I12 of docs/guarantees.md.
// MILLRACE_SEEDS=3000 makes 3,000 runs; MILLRACE_SEED=42 makes the run of one seed again and prints its course.
func TestSeeds(t *testing.T) {
	t.Parallel()

	if one := os.Getenv("MILLRACE_SEED"); one != "" {
		seed, err := strconv.ParseUint(one, 10, 64)
		if err != nil {
			t.Fatal(err)
		}

		runSeed(t, seed, true)

		return
	}

	runs := defaultSeeds

	if many := os.Getenv("MILLRACE_SEEDS"); many != "" {
		n, err := strconv.Atoi(many)
		if err != nil {
			t.Fatal(err)
		}

		runs = n
	}

	base := rand.Uint64N(1 << 40)

	var done atomic.Int64

	for i := range runs {
		seed := base + uint64(i)

		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			runSeed(t, seed, false)
			TellProgress("seeds", int(done.Add(1)), runs)
		})
	}
}

func runSeed(t *testing.T, seed uint64, loud bool) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed)
		w.play()

		w.mu.Lock()
		defer w.mu.Unlock()

		if loud {
			t.Logf("%+v\n%s", *w.spec, strings.Join(w.trace, "\n"))
			t.Logf("%+v", w.stats)
		}

		if dir := os.Getenv("MILLRACE_TRACES"); dir != "" && len(w.broken) > 0 {
			course := fmt.Sprintf("%+v\n%s\n", *w.spec, strings.Join(w.trace, "\n"))
			if err := os.WriteFile(filepath.Join(dir, strconv.FormatUint(seed, 10)), []byte(course), 0o600); err != nil {
				t.Error(err)
			}
		}

		if len(w.broken) > 0 {
			t.Errorf("%s\nonce more: MILLRACE_SEED=%d go test ./actors -run '^TestSeeds$' -v", strings.Join(w.broken, "\n"), seed)
		}
	})
}
