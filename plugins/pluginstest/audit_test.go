package pluginstest

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// notebook is a test that notes down its failures.
type notebook struct {
	testing.TB

	mu       sync.Mutex
	failures []string
}

func (n *notebook) Helper() {}

func (n *notebook) Error(args ...any) { n.Errorf("%s", fmt.Sprint(args...)) }

func (n *notebook) Errorf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.failures = append(n.failures, fmt.Sprintf(format, args...))
}

func (n *notebook) Fatalf(format string, args ...any) {
	n.Errorf(format, args...)
	runtime.Goexit()
}

func (n *notebook) FailNow() { runtime.Goexit() }

// note runs a check and returns what it reports.
func note(t *testing.T, check func(tb testing.TB)) string {
	t.Helper()

	n := &notebook{TB: t}

	var ended sync.WaitGroup

	ended.Go(func() { check(n) })
	ended.Wait()

	n.mu.Lock()
	defer n.mu.Unlock()

	return strings.Join(n.failures, "\n")
}

func named(t *testing.T, name string) func(tb testing.TB, s *Subject) {
	t.Helper()

	for _, c := range checks() {
		if c.name == name {
			return c.run
		}
	}

	t.Fatalf("there is no check %q", name)

	return nil
}
