// Command bench measures the promises that millrace makes about speed, side by side with the plainest program that does
// the same, and prints a table. Run it with `go -C bench run .`; docs/performance.md says what the lines mean.
//
// Everything is measured against a base in the same run and by turns, since machines have moods: a ratio says more than a
// number. The command fails when a promise is broken and -check is set.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	rounds   int
	messages int
	idle     time.Duration
	paced    time.Duration
	dir      string
	profiles string
}

// section is one part of the table.
type section struct {
	name string
	run  func(options) ([]line, error)
}

// all returns the names of sections as -only takes them.
func all(sections []section) string {
	names := make([]string, len(sections))
	for i, s := range sections {
		names[i] = s.name
	}

	return strings.Join(names, ",")
}

var errBroken = errors.New("bench: a promise is broken")

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 3 && args[0] == "read" { // a process of section rocketmq
		return read(args[1], args[2], out)
	}

	sections := []section{
		{"identity", identity},
		{"scraped", scraped},
		{"durable", durable},
		{"latency", latency},
		{"plugins", outside},
		{"json", jsonWork},
		{"rocketmq", rocketmqWork},
		{"idle", idle},
	}

	var (
		o     options
		flags = flag.NewFlagSet("bench", flag.ContinueOnError)
		only  = flags.String("only", all(sections), "the sections to run, separated by commas")
		check = flags.Bool("check", false, "exit with 1 when a promise is broken")
	)

	flags.IntVar(&o.rounds, "rounds", 7, "how often each side is measured; the table shows medians")
	flags.IntVar(&o.messages, "messages", 4_000_000, "messages a round of identity")
	flags.DurationVar(&o.idle, "idle", time.Minute, "how long the idle job is watched")
	flags.DurationVar(&o.paced, "paced", 2*time.Second, "how long a round of latency is paced")
	flags.StringVar(&o.dir, "dir", "", "where durable and rocketmq keep their data; empty means the system's temporary directory")

	flags.StringVar(&o.profiles, "profiles", "", "where rocketmq writes CPU profiles of its readers in Go; empty means nowhere")

	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("bench: %w", err)
	}

	broken := false

	for name := range strings.SplitSeq(*only, ",") {
		i := slices.IndexFunc(sections, func(s section) bool { return s.name == name })
		if i < 0 {
			return fmt.Errorf("bench: there is no section %q", name)
		}

		lines, err := sections[i].run(o)
		if err != nil {
			return fmt.Errorf("bench: %s: %w", name, err)
		}

		for _, l := range lines {
			if _, err := fmt.Fprintln(out, l); err != nil {
				return fmt.Errorf("bench: %w", err)
			}

			broken = broken || l.broken
		}
	}

	if broken && *check {
		return errBroken
	}

	return nil
}
