package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// viewFlags say how answers are shown.
type viewFlags struct {
	askedFlags

	asJSON, watch bool
	every         time.Duration
}

func (f *viewFlags) add(flags *pflag.FlagSet) {
	f.askedFlags.add(flags)
	flags.BoolVar(&f.asJSON, "json", false, "write JSON, as the admin endpoint does")
	flags.BoolVarP(&f.watch, "watch", "w", false,
		"show it anew each second, until ^C: in place on a terminal, one below the other elsewhere")
	flags.DurationVar(&f.every, "every", time.Second, "how often --watch asks")
}

// view is an answer: a value for JSON, and lines for people.
type view struct {
	value any
	lines []string
}

// show asks and shows the answer, once or until the first interrupt, which then is a clean end. What goes wrong is an error at
// the first time, and later only shown: who watches may see a job come back.
func (a *app) show(ctx context.Context, f viewFlags, ask func(context.Context, *jobsThere) (view, error)) error {
	if f.every <= 0 {
		return usagef("--every is %v; use a time above 0", f.every)
	}

	jobs, err := a.reach(ctx, f.askedFlags)
	if err != nil {
		return err
	}

	defer jobs.close()

	ctx, stop := a.untilInterrupted(ctx)
	defer stop()

	look := func() (v view, err error) {
		err = jobs.do(ctx, func(ctx context.Context) error {
			v, err = ask(ctx, jobs)

			return err
		})

		return v, err
	}

	v, err := look()

	switch {
	case err != nil && f.watch && ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	case f.watch:
		return a.keepShowing(ctx, f, v, look)
	case f.asJSON:
		return a.encode(v.value)
	default:
		_, err = fmt.Fprintln(a.Out, strings.Join(v.lines, "\n"))

		return err //nolint:wrapcheck // of the output
	}
}

// keepShowing shows answers until ctx ends.
func (a *app) keepShowing(ctx context.Context, f viewFlags, v view, look func() (view, error)) (err error) {
	ticker := time.NewTicker(f.every)
	defer ticker.Stop()

	s := newScreen(a.Out, a.Out, false)

	for {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && f.asJSON:
			a.report(err)
		case err != nil:
			s.draw([]string{fmt.Sprintf("%s  %v", time.Now().Format(time.TimeOnly), err), ""})
		case f.asJSON:
			if err := json.NewEncoder(a.Out).Encode(v.value); err != nil {
				return fmt.Errorf("the output: %w", err)
			}
		default:
			s.draw(append([]string{time.Now().Format(time.TimeOnly)}, append(v.lines, "")...))
		}

		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}

		v, err = look()
	}
}
