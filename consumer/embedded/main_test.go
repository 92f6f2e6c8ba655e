package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/millrace/millrace/pipeline"
)

// The tests that need another process run themselves again, with one of these roles and a directory.
const (
	envRole = "EMBEDDED_TEST_ROLE"
	envDir  = "EMBEDDED_TEST_DIR"

	roleHold    = "hold"    // opens the broker and holds it until stdin ends
	rolePublish = "publish" // publishes until it is killed, and says what was acknowledged
)

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		if err := play(role, os.Getenv(envDir)); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)

			os.Exit(1)
		}

		return
	}

	goleak.VerifyTestMain(m)
}

func play(role, dir string) error {
	b, err := Open(Options{Dir: dir})
	if err != nil {
		return err
	}

	_, _ = fmt.Fprintln(os.Stdout, "open")

	if role == rolePublish {
		return publishForEver(b)
	}

	_, _ = io.Copy(io.Discard, os.Stdin)

	return b.Close()
}

// publishForEver publishes batches of messages whose ids nobody else uses, two at a time, and prints the ids of each batch
// when it is acknowledged.
func publishForEver(b *Broker) error {
	const publishers, perBatch = 2, 20

	ctx := context.Background()
	if err := b.CreateTopic(ctx, "t", 3); err != nil {
		return err
	}

	failed := make(chan error, publishers)

	for p := range publishers {
		go func() {
			for batch := 0; ; batch++ {
				messages := make([]*pipeline.Message, perBatch)
				for i := range messages {
					id := fmt.Sprintf("%d-%d-%d-%d", os.Getpid(), p, batch, i)
					messages[i] = &pipeline.Message{ID: id, Key: id, Body: make([]byte, 500)}
				}

				if err := b.Publish(ctx, "t", messages); err != nil {
					failed <- err

					return
				}

				_, _ = fmt.Fprintf(os.Stdout, "%d-%d-%d %d\n", os.Getpid(), p, batch, perBatch) // one write: lines are whole
			}
		}()
	}

	return <-failed
}

// child starts a process with a role. It returns when the broker is open there.
func child(t *testing.T, role, dir string) (process *exec.Cmd, stdin io.Closer, stdout *bufio.Scanner) {
	t.Helper()

	process = exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), envRole+"="+role, envDir+"="+dir)
	process.Stderr = os.Stderr

	in, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}

	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := process.Start(); err != nil {
		t.Fatal(err)
	}

	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "open" {
		t.Fatalf("the child said %q, %v", lines.Text(), process.Wait())
	}

	return process, in, lines
}
