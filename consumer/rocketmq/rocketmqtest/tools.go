package rocketmqtest

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Java runs a Java program of one source file with RocketMQ's own client at hand, and returns what it prints. The name
// server's address is its first argument.
func (c *Cluster) Java(t testing.TB, source string, args ...string) string {
	t.Helper()

	source, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}

	return c.run(t, append([]string{source, c.NameServer}, args...)...)
}

// Admin runs mqadmin once, with a subcommand and its arguments, and returns what it prints.
func (c *Cluster) Admin(t testing.TB, args ...string) string {
	t.Helper()

	return c.run(t, append(append([]string{"org.apache.rocketmq.tools.command.MQAdminStartup"}, args...), "-n", c.NameServer)...)
}

func (c *Cluster) run(t testing.TB, args ...string) string {
	t.Helper()

	flags := []string{
		"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.home=" + c.dir, "-Drocketmq.home.dir=" + c.dir,
		"-Djava.io.tmpdir=" + c.dir, "-cp", c.ClassPath(),
	}

	command := exec.CommandContext(t.Context(), "java", append(flags, args...)...) //nolint:gosec // the test's own arguments
	command.Dir = c.dir

	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("rocketmqtest: java %v: %v\n%s", args, err, tail(output))
	}

	lines := strings.SplitAfter(string(output), "\n")

	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { // what their logging says of itself
		return strings.Contains(line, "|-INFO in ") || strings.Contains(line, "|-WARN in ")
	}), "")
}
