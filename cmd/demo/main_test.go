package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asDemo makes the test binary be the demo, so that a test can kill a real process.
const asDemo = "MILLRACE_TEST_AS_DEMO"

func TestMain(m *testing.M) {
	if os.Getenv(asDemo) != "" {
		main()
	}

	goleak.VerifyTestMain(m)
}

func TestTheCommandExplainsItself(t *testing.T) {
	t.Parallel()

	void, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = void.Close() })

	for flag, want := range map[string]int{"-help": exitBalanced, "-unheard-of": exitUsage, "-repeat=0": exitUsage} {
		if got := demo([]string{flag}, void, void); got != want {
			t.Errorf("%s: exit code %d, want %d", flag, got, want)
		}
	}
}
