package control_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain keeps sockets for directories with long paths out of the user's caches.
func TestMain(m *testing.M) {
	caches, err := os.MkdirTemp("", "m")
	if err != nil {
		panic(err)
	}

	if err := os.Setenv("XDG_CACHE_HOME", caches); err != nil {
		panic(err)
	}

	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(caches)

		os.Exit(code)
	}))
}
