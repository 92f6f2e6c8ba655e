package pipelinetest

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

var errOther = errors.New("something else")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// notebook is a test that notes down its failures.
type notebook struct {
	testing.TB

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (n *notebook) Helper() {}

func (n *notebook) Errorf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.failures = append(n.failures, fmt.Sprintf(format, args...))
}

func (n *notebook) FailNow() {
	n.Errorf("gave up")
	runtime.Goexit()
}

func (n *notebook) Cleanup(f func()) { n.cleanups = append(n.cleanups, f) }

// note runs a check and returns what it reports.
func note(t *testing.T, check func(tb testing.TB)) []string {
	t.Helper()

	n := &notebook{TB: t}

	var ended sync.WaitGroup

	ended.Go(func() { check(n) })
	ended.Wait()

	for i := range n.cleanups {
		n.cleanups[len(n.cleanups)-1-i]()
	}

	return n.failures
}

// audit is what a suite reports of something, by the names of its checks.
type audit map[string][]string

func (a audit) none(t *testing.T) {
	t.Helper()

	for check, failures := range a {
		if len(failures) > 0 {
			t.Errorf("%s: reported %q", check, failures)
		}
	}
}

// has asks for a report of a check with certain words in it.
func (a audit) has(t *testing.T, check, words string) {
	t.Helper()

	if _, ok := a[check]; !ok {
		t.Fatalf("there is no check %q", check)
	}

	for _, failure := range a[check] {
		if strings.Contains(failure, words) {
			return
		}
	}

	t.Errorf("%s: reported %q, want something with %q", check, a[check], words)
}

// hang is longer than any suite waits.
const hang = 100 * patience

// bubble runs f in virtual time, and then waits for whoever hangs.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t)
		<-time.After(2 * hang)
	})
}
