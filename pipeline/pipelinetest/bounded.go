package pipelinetest

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// patience is how long a call may take before the suite takes it for hanging; a guess that no slow machine gets near.
const patience = time.Minute

// bounded calls f and reports whether it came back. A panic, or no return in time, is a failure of the test.
func bounded(tb testing.TB, call string, f func()) bool {
	tb.Helper()

	trouble := make(chan string, 1)

	go func() {
		defer func() {
			if p := recover(); p != nil {
				trouble <- fmt.Sprintf("panicked: %v\n%s", p, debug.Stack())
			}

			close(trouble)
		}()

		f()
	}()

	timer := time.NewTimer(patience)
	defer timer.Stop()

	var what string
	select {
	case what = <-trouble:
	case <-timer.C:
		what = "has not returned after " + patience.String()
	}

	if what != "" {
		tb.Errorf("%s %s", call, what)
	}

	return what == ""
}

// open opens a transform or a sink that has something to open, and reports whether it is ready.
func open(ctx context.Context, tb testing.TB, part any) bool {
	tb.Helper()

	opener, ok := part.(pipeline.Opener)
	if !ok {
		return true
	}

	var err error
	if !bounded(tb, "Open", func() { err = opener.Open(ctx) }) {
		return false
	}

	if err != nil {
		tb.Errorf("Open: %v", err)
	}

	return err == nil
}

// shut closes what has something to close.
func shut(tb testing.TB, part any) {
	tb.Helper()

	closer, ok := part.(io.Closer)
	if !ok {
		return
	}

	var err error
	if bounded(tb, "Close", func() { err = closer.Close() }) && err != nil {
		tb.Errorf("Close: %v", err)
	}
}

// shutTwice closes what is closed already; an error is all right.
func shutTwice(tb testing.TB, part any) {
	tb.Helper()

	if closer, ok := part.(io.Closer); ok {
		bounded(tb, "Close after Close", func() { _ = closer.Close() })
	}
}
