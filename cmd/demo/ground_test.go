package main

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/admin"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

// TestARunOnRocketMQBalances runs the demo on a real broker: in trouble, and in a process that kills itself.
func TestARunOnRocketMQBalances(t *testing.T) {
	t.Parallel()

	cluster := rocketmqtest.Start(t, rocketmqtest.Options{})
	on := rocketmqScheme + cluster.NameServer

	keeper, err := admin.Open(admin.Options{NameServers: []string{cluster.NameServer}})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(keeper.Close)

	// Without a directory to keep, nothing is left, at the cluster neither.
	code, err := run(t.Context(), options{
		broker: on, repeat: 1, seed: 1, poison: true, panics: true, hang: true, retryDelay: 1,
	}, &screen{out: t.Output()})
	if code != exitBalanced || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}

	topics, err := keeper.Topics(t.Context())
	if err != nil || slices.ContainsFunc(topics, func(name string) bool { return strings.Contains(name, "demo-") }) {
		t.Errorf("left are %v, %v", topics, err)
	}

	groups, err := keeper.Groups(t.Context())
	if err != nil || slices.ContainsFunc(groups, func(name string) bool { return strings.Contains(name, "demo-") }) {
		t.Errorf("left are %v, %v", groups, err)
	}

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), self, "-broker", on, "-keep", dir, "-slow", "-kill-after", "1500ms")
	c.Env = append(os.Environ(), asDemo+"=1")

	out, err := c.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Exited() {
		t.Fatalf("the run was not killed: %v\n%s", err, out)
	}

	code, said := runIn(t.Context(), t, options{keep: dir, broker: on})
	if code != exitBalanced {
		t.Errorf("exit code %d", code)
	}

	holds(t, said, "books balance: 1,707 published = 1,679 completed + 28 filtered + 0 dead-lettered", "%RETRY%quakes@b0/0")

	if _, err := openRuns(dir, 1, ""); err == nil || !strings.Contains(err.Error(), on) {
		t.Errorf("a run on another broker: %v", err)
	}
}
