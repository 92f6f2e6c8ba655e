package cli_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/consumer/embedded"
)

// holdVariable makes this test a process that has a broker open until its input ends.
const holdVariable = "MILLRACE_TEST_HOLD"

func TestWhoHasABrokerOpenIsNamed(t *testing.T) {
	if dir := os.Getenv(holdVariable); dir != "" {
		hold(t, dir)

		return
	}

	t.Parallel()

	w := setup(t)
	w.ok("", "topics", "create", "in")

	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestWhoHasABrokerOpenIsNamed$")
	child.Env = append(os.Environ(), holdVariable+"="+w.path("data"))

	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}

	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := child.Start(); err != nil {
		t.Fatal(err)
	}

	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("%q, %v", line, err)
	}

	c := w.do("", "dlq", "ls")
	if want := fmt.Sprintf("process %d ", child.Process.Pid); c.code != cli.ExitFailed || !strings.Contains(c.err, want) {
		t.Errorf("exit code %d, want one line with %q, got\n%s", c.code, want, c.err)
	}

	_ = in.Close()

	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}

// hold opens a broker without serving it, until the input ends.
func hold(t *testing.T, dir string) {
	t.Helper()

	broker, err := embedded.Open(embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}

	_, _ = os.Stdout.WriteString("open\n")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()

	if err := broker.Close(); err != nil {
		t.Error(err)
	}
}
