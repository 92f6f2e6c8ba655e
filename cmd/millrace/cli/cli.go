// Package cli is the millrace command as a library, so that a command with plugins of your own is five lines:
//
//	package main
//
//	func main() { os.Exit(cli.Main(standard.Register, mine.Register)) }
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
)

// The exit codes.
const (
	// ExitOK: everything that was asked for is done.
	ExitOK = 0
	// ExitFailed: it failed; the error says why.
	ExitFailed = 1
	// ExitUsage: the command line is wrong.
	ExitUsage = 2
	// ExitMistakes: a job file has mistakes.
	ExitMistakes = 3
	// ExitUnfinished: a job stopped with messages unfinished; they come again.
	ExitUnfinished = 4
	// ExitTests: a test of a job did not end as expected.
	ExitTests = 5
	// ExitInterrupted: a second signal stopped everything at once.
	ExitInterrupted = 130
)

// Command is one call of the command, with all that it touches of its process. In, Out and Err are required.
type Command struct {
	// Register add the plugins that job files may use.
	Register []func(*plugins.Registry) error
	// In is read by produce, and by commands that are given "-" for a file; Out gets what was asked for, Err everything
	// else: progress, notes and errors.
	In       io.Reader
	Out, Err io.Writer
	// Variables are the ones of job files.
	Variables jobfile.Variables
	// Interrupts gets a value for each time that the process is asked to stop. Nil means never.
	Interrupts <-chan os.Signal
}

// Main runs the command of this process with the plugins that the functions register, and returns the exit code.
func Main(register ...func(*plugins.Registry) error) int {
	const enough = 3 // to drain, to stop at once, and one that comes too late

	interrupts := make(chan os.Signal, enough)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)

	defer signal.Stop(interrupts)

	c := Command{
		Register: register, In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Variables: jobfile.Environment(), Interrupts: interrupts,
	}

	return c.Run(context.Background(), os.Args[1:]...)
}

// Run runs the command with some arguments, without the name of the command, and returns the exit code. Errors have been
// written to Err then.
func (c *Command) Run(ctx context.Context, args ...string) int {
	registry := new(plugins.Registry)
	for _, register := range c.Register {
		if err := register(registry); err != nil {
			c.report(err)

			return ExitFailed
		}
	}

	root := c.root(registry)                  //nolint:contextcheck // the commands get it when they run
	root.SetArgs(append([]string{}, args...)) // never nil, which would mean those of the process

	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}

	c.report(err)

	if coded, ok := errors.AsType[*codeError](err); ok {
		return coded.code
	}

	if _, ok := errors.AsType[*jobfile.Error](err); ok {
		return ExitMistakes
	}

	return ExitFailed
}

// report writes an error: mistakes of job files as they are, other errors as a line that names the command.
func (c *Command) report(err error) {
	if coded, ok := errors.AsType[*codeError](err); ok && coded.err == nil {
		return // it has been said
	}

	if mistakes, ok := errors.AsType[*jobfile.Error](err); ok {
		_, _ = fmt.Fprintln(c.Err, mistakes.Error())

		return
	}

	_, _ = fmt.Fprintf(c.Err, "millrace: %v\n", err)
}

// codeError is an error with its exit code. A nil err has been reported already.
type codeError struct {
	code int
	err  error
}

var _ error = (*codeError)(nil)

// Error returns the error's text.
func (e *codeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}

	return e.err.Error()
}

// Unwrap returns the error.
func (e *codeError) Unwrap() error { return e.err }

// usagef returns an error of the command line.
func usagef(format string, args ...any) error {
	return &codeError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}
