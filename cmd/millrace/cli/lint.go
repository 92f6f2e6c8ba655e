package cli

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/pipeline/jobfile"
)

func (a *app) lintCommand() *cobra.Command {
	var asJSON bool

	cmd := &cobra.Command{
		Use:     "lint [FILE]...",
		Short:   "Check job files: every mistake, with its line, its column and its cure",
		GroupID: groupJobs,
		Long: `Lint reads job files as run does, and opens nothing. It tells every mistake at once, one a line, as
FILE:LINE:COLUMN  what is wrong; what to do about it. Variables must be set, or have a default.

FILE is job.yaml when none is named; - is the input. The exit code is 3 when there are mistakes.`,
		Example: `  millrace lint
  millrace lint jobs/*.yaml
  RMQ_KEY=x RMQ_SECRET=x millrace lint --json quakes.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return a.lint(filesOf(args), asJSON) },
	}

	cmd.Flags().BoolVar(&asJSON, "json", false, "write the mistakes as a JSON array, which is empty when there are none")

	return cmd
}

func (a *app) lint(names []string, asJSON bool) error {
	files, err := a.load(names)

	wrong, isWrong := errors.AsType[*jobfile.Error](err)
	if err != nil && !isWrong {
		return err
	}

	if asJSON {
		mistakes := []jobfile.Mistake{}
		if isWrong {
			mistakes = wrong.Mistakes
		}

		if err := json.NewEncoder(a.Out).Encode(mistakes); err != nil {
			return fmt.Errorf("lint: %w", err)
		}

		if isWrong {
			return &codeError{code: ExitMistakes}
		}

		return nil
	}

	if isWrong {
		return wrong
	}

	for _, f := range files {
		_, _ = fmt.Fprintf(a.Out, "%s: %s, no mistakes\n", f.Name, plural(len(f.Jobs), "job"))
	}

	return nil
}
