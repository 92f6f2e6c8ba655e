package main

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What is printed is the address of a name server that answers; an interrupt ends it and leaves nothing.
func TestServersLiveUntilTheInterrupt(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)

	ctx, interrupt := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)

	go func() {
		err := run(ctx, nil, in)
		_ = in.CloseWithError(io.EOF)
		done <- err
	}()

	var text strings.Builder

	for buffer := make([]byte, 1024); !strings.Contains(text.String(), "Ctrl-C"); {
		n, err := out.Read(buffer)
		text.Write(buffer[:n])

		if err != nil {
			t.Fatalf("%v after %q: %v", err, text.String(), <-done)
		}
	}

	_, addr, _ := strings.Cut(text.String(), "rocketmq://")
	addr, _, _ = strings.Cut(addr, ";")

	client := remoting.NewClient(remoting.Options{})
	defer client.Close()

	// That there is no such topic is an answer, too.
	ask := &remoting.Command{Code: remoting.GetRouteInfo, Ext: map[string]string{"topic": "nobody"}}
	if _, err := client.Call(ctx, addr, ask, remoting.TopicNotExist); err != nil {
		t.Errorf("the name server at %q: %v", addr, err)
	}

	interrupt()

	if err := <-done; err != nil {
		t.Error(err)
	}

	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{{"-version", "1.0"}, {"-brokers", "-1"}} {
		err := run(t.Context(), args, io.Discard)
		if err == nil || !strings.Contains(err.Error(), args[1]) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
