package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// options are the flags of one run.
type options struct {
	keep   string
	broker string
	repeat int
	seed   uint64

	poison, panics, hang, slow bool

	retryDelay time.Duration
	killAfter  time.Duration
}

const usage = `The demo publishes a week of earthquakes (1,707 events of the USGS, February 2018) to a topic of an embedded
broker, or of a RocketMQ, and runs two jobs over them:

  topic quakes -> classify -+-> archive  -> archive.jsonl            all earthquakes
                            +-> regions  -> summaries.jsonl          a line for each region of a batch
                            +-> notable -+-> archive                 with a headline
                                         +-> alerts -> topic alerts  the major ones
  topic alerts -> write -> alerts.jsonl

It ends by itself when everything is finished, and then checks the books: every event must be completed, filtered or
dead-lettered, every line must be there once or have an explanation, every offset must have reached the end of its
queue. ^C drains; a second ^C stops at once.

Try:
  go run ./cmd/demo                                  the plain run
  go run ./cmd/demo -poison -panic -hang             failures of all kinds, contained
  go run ./cmd/demo -keep /tmp/quakes -slow -kill-after 500ms
  go run ./cmd/demo -keep /tmp/quakes                goes on where the killed run was
  go run ./cmd/demo -repeat 100                      volume
  go run ./cmd/demo -broker rocketmq://127.0.0.1:9876
                                                     the same on RocketMQ; go run ./cmd/rocketmq starts one to throw away

Flags:
`

const exitCodes = `
Exit codes:
  0    the books balance
  1    the run failed; the error says why
  2    the flags are wrong
  3    the books do not balance; the report says where
  130  stopped by ^C; the report says what is unfinished, and -keep goes on there
  137  killed by -kill-after
`

// errUsage is returned for flags that are wrong, when that has been said already.
var errUsage = errors.New("demo: wrong flags")

// parseFlags reads the command line. It writes the usage and complaints to w and fails with [flag.ErrHelp] or errUsage.
func parseFlags(args []string, w io.Writer) (options, error) {
	var o options

	f := flag.NewFlagSet("demo", flag.ContinueOnError)
	f.SetOutput(w)
	f.Usage = func() {
		_, _ = io.WriteString(w, usage)
		f.PrintDefaults()
		_, _ = io.WriteString(w, exitCodes)
	}

	f.StringVar(&o.keep, "keep", "", "keep the broker and the files in this `dir`, and go on with what is there")
	f.StringVar(&o.broker, "broker", "",
		"`address` of a RocketMQ's name servers, rocketmq://HOST:PORT[,HOST:PORT]; without it the broker is embedded")
	f.IntVar(&o.repeat, "repeat", 1, "publish the feed `n` times, with ids of their own")
	f.Uint64Var(&o.seed, "seed", 1, "`number` that picks the events of -poison, -panic and -hang")
	f.BoolVar(&o.poison, "poison", false, "three events fail for good: dead letters")
	f.BoolVar(&o.panics, "panic", false, "a stage panics for three events at their first delivery: they come again")
	f.BoolVar(&o.hang, "hang", false, "a stage never returns for one event: its lane is replaced, the event comes again")
	f.BoolVar(&o.slow, "slow", false, fmt.Sprintf("each event takes up to %v", slowest))
	f.DurationVar(&o.retryDelay, "retry-delay", 200*time.Millisecond, "wait of the first retry; later ones wait twice as long")
	f.DurationVar(&o.killAfter, "kill-after", 0, "the process kills itself (SIGKILL) after this time; needs -keep")

	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err //nolint:wrapcheck // the caller looks for it
		}

		return o, errUsage
	}

	if problem := o.problem(f.Args()); problem != "" {
		_, _ = fmt.Fprintf(w, "demo: %s; -help explains the flags\n", problem)

		return o, errUsage
	}

	return o, nil
}

// problem says what is wrong with options that could be parsed.
func (o *options) problem(rest []string) string {
	switch {
	case len(rest) > 0:
		return fmt.Sprintf("there are no arguments beside flags, but %q was given", rest[0])
	case o.broker != "" && !strings.HasPrefix(o.broker, rocketmqScheme):
		return fmt.Sprintf("-broker is %q; write it like rocketmq://127.0.0.1:9876", o.broker)
	case o.repeat < 1:
		return "-repeat is at least 1"
	case o.retryDelay < 0 || o.killAfter < 0:
		return "a time is not negative"
	case o.killAfter > 0 && o.keep == "":
		return "-kill-after needs -keep, or else nobody can go on with what it leaves"
	default:
		return ""
	}
}
