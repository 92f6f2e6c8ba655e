package cli

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/millrace/millrace/cmd/millrace/jobtest"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
)

// defaultTests is the file of tests when none is named: the one that init writes.
const defaultTests = "job_test.yaml"

func (a *app) testCommand() *cobra.Command {
	var timeout time.Duration

	cmd := &cobra.Command{
		Use:     "test [FILE]...",
		Short:   "Run tests of jobs: what goes in, and what must come out",
		GroupID: groupJobs,
		Long: `Test runs a job over a broker in memory, with sinks that only remember, and holds what comes out against what is
expected: each sink gets the messages that are listed for it, in any order, and no others; "any" lets a sink get what it likes.
Of a message counts what is written: key, tag, props, body. Bodies that are JSON are compared by their fields. Messages that
must fail are listed with the stage and a part of the error.

  job: job.yaml
  tests:
    - name: only great quakes raise an alert
      in:
        - { key: k1, body: { mag: 6.5 } }
        - { key: k2, body: not JSON }
      out:
        alerts: [ { key: k1, body: { mag: 6.5, severity: major } } ]
        archive: any
      fail:
        - { key: k2, stage: classify/json, error: invalid }

Time is real, but nobody waits for it: retries come after a millisecond, batches are handed on as soon as nothing else is left to
do, and for stages that hold messages up or forget them (throttle, dedupe) the clock jumps to the end of each wait, which no
timeout counts. Stages that talk to others (a look-up, a request) really do. Variables of the job file come from variables: in the
file of the tests, and from nowhere else.

FILE is job_test.yaml when none is named. The exit code is 5 when a test fails.`,
		Example: `  millrace test
  millrace test *_test.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{defaultTests}
			}

			return a.test(cmd.Context(), args, timeout)
		},
	}

	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long a test may take")

	return cmd
}

func (a *app) test(ctx context.Context, names []string, timeout time.Duration) error {
	ctx, stop := a.untilInterrupted(ctx)
	defer stop()

	passed, failed := 0, 0

	for _, name := range names {
		p, f, err := a.testFile(ctx, name, timeout)
		if err != nil {
			return err
		}

		passed += p
		failed += f
	}

	_, _ = fmt.Fprintf(a.Out, "%s, %d failed\n", plural(passed+failed, "test"), failed)

	if failed > 0 {
		return &codeError{code: ExitTests}
	}

	return nil
}

// testFile runs the tests of a file.
func (a *app) testFile(ctx context.Context, name string, timeout time.Duration) (passed, failed int, err error) {
	src, err := a.read(name)
	if err != nil {
		return 0, 0, err
	}

	tests, err := jobfile.ParseTests(name, src)
	if err != nil {
		return 0, 0, err //nolint:wrapcheck // it says where it is from
	}

	job, redactor, err := a.tested(tests)
	if err != nil {
		return 0, 0, err
	}

	for _, c := range tests.Cases {
		began := time.Now()

		within, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took more than %s", span(timeout)))
		problems, err := jobtest.Run(within, job, c, zap.NewNop())

		cancel()

		if ctx.Err() != nil {
			return passed, failed, &codeError{code: ExitInterrupted}
		}

		if err != nil {
			problems = append(problems, jobtest.Problem{Place: c.Place, Lines: []string{err.Error()}})
		}

		if len(problems) == 0 {
			passed++

			_, _ = fmt.Fprintf(a.Out, "ok    %s  (%s)\n", c.Name, span(time.Since(began)))

			continue
		}

		failed++

		_, _ = fmt.Fprintf(a.Out, "FAIL  %s\n", c.Name)

		for _, p := range problems {
			for i, line := range p.Lines {
				if i == 0 {
					line = fmt.Sprintf("%s:%d:%d  %s", name, p.Line, p.Column, line)
				}

				_, _ = fmt.Fprintln(a.Out, "      "+redactor.Redact(line))
			}
		}
	}

	return passed, failed, nil
}

// tested returns the job that a file of tests is about.
func (a *app) tested(tests *jobfile.Tests) (*jobfile.Job, jobfile.Redactor, error) {
	none := jobfile.Redactor{}

	name := tests.File
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(tests.Name), name)
	}

	src, err := a.read(name)
	if err != nil {
		return nil, none, fmt.Errorf("%s: %w", tests.Name, err)
	}

	file, err := jobfile.Parse(name, src, a.registry, jobfile.Variables{
		Lookup: func(name string) (string, bool) {
			value, ok := tests.Variables[name]

			return value, ok
		},
		ReadFile: func(path string) ([]byte, error) {
			value, ok := tests.Variables["file:"+path]
			if !ok {
				return nil, fmt.Errorf("tests read no files; add %q to variables: %w", "file:"+path, fs.ErrNotExist)
			}

			return []byte(value), nil
		},
	})
	if err != nil {
		return nil, none, err //nolint:wrapcheck // it says where it is from
	}

	jobs := make(map[string]*jobfile.Job)
	for _, job := range file.Jobs {
		jobs[job.Name] = job
	}

	names := slices.Sorted(maps.Keys(jobs))

	switch job, ok := jobs[tests.Job]; {
	case ok:
		return job, file.Redactor, nil
	case tests.Job != "":
		return nil, none, fmt.Errorf("%s: %s has no job %q; %s", tests.Name, name, tests.Job, pipeline.Suggest(tests.Job, names))
	case len(jobs) == 1:
		return file.Jobs[0], file.Redactor, nil
	default:
		return nil, none, fmt.Errorf("%s: %s has several jobs; add name: with one of them", tests.Name, name)
	}
}
