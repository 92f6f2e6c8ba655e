// Command demo runs two jobs over a week of earthquakes and reconciles the result; README.md says more.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(demo(os.Args[1:], os.Stdout, os.Stderr))
}

// demo runs the command and returns its exit code.
func demo(args []string, out, errs *os.File) int {
	o, err := parseFlags(args, errs)

	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitBalanced
	case err != nil:
		return exitUsage
	}

	// The first signal drains; from then on a signal does what it does to any process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	context.AfterFunc(ctx, stop)

	code, err := run(ctx, o, newScreen(out))
	if err != nil {
		_, _ = fmt.Fprintln(errs, err)
	}

	return code
}
