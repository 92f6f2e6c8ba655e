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

	return output(t, c.JavaCommand(t, source, args...))
}

// JavaCommand returns such a program not started yet, for those who talk with it while it runs. It is killed when the test ends.
func (c *Cluster) JavaCommand(t testing.TB, source string, args ...string) *exec.Cmd {
	t.Helper()

	source, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}

	return c.java(t, append([]string{source, c.NameServer}, args...)...)
}

// Admin runs mqadmin once, with a subcommand and its arguments, and returns what it prints.
func (c *Cluster) Admin(t testing.TB, args ...string) string {
	t.Helper()

	args = append([]string{"org.apache.rocketmq.tools.command.MQAdminStartup"}, args...)

	return output(t, c.java(t, append(args, "-n", c.NameServer)...))
}

func (c *Cluster) java(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()

	flags := []string{
		"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.home=" + c.dir, "-Drocketmq.home.dir=" + c.dir,
		"-Djava.io.tmpdir=" + c.dir, "-cp", c.ClassPath(),
	}

	command := exec.CommandContext(t.Context(), "java", append(flags, args...)...) //nolint:gosec // the test's own arguments
	command.Dir = c.dir

	return command
}

func output(t testing.TB, command *exec.Cmd) string {
	t.Helper()

	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("rocketmqtest: %v: %v\n%s", command.Args, err, tail(said))
	}

	lines := strings.SplitAfter(string(said), "\n")

	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { // what their logging says of itself
		return strings.Contains(line, "|-INFO in ") || strings.Contains(line, "|-WARN in ")
	}), "")
}
