package cli

import (
	"embed"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// templates are the files that init and new write, in which NAME stands for the name of the job or the plugin, and the parts
// of the reference of job files that nothing describes by itself.
//
//go:embed template
var templates embed.FS

func (a *app) initCommand() *cobra.Command {
	var name string

	cmd := &cobra.Command{
		Use:     "init [DIRECTORY]",
		Short:   "Write a job file to begin with, and a test of it",
		GroupID: groupJobs,
		Long: `Init writes job.yaml and job_test.yaml into a directory, which is made when it is missing.
It overwrites nothing.`,
		Example: `  millrace init
  millrace init quakes --name quakes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}

			return a.initialize(dir, name)
		},
	}

	cmd.Flags().StringVar(&name, "name", "events", "the job's `name`, and its topic's")

	return cmd
}

func (a *app) initialize(dir, name string) error {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" || name == "" {
		return usagef("init: --name is %q; use letters, digits, '.', '_' and '-'", name)
	}

	var files []newFile

	for _, file := range []string{"job.yaml", "job_test.yaml"} {
		text, err := templates.ReadFile("template/" + file)
		if err != nil {
			return fmt.Errorf("init: %w", err)
		}

		files = append(files, newFile{name: file, text: strings.ReplaceAll(string(text), "NAME", name)})
	}

	if err := a.writeNew(dir, files); err != nil {
		return fmt.Errorf("init: %w", err)
	}

	job := filepath.Join(dir, files[0].name)
	_, _ = fmt.Fprintf(a.Out, `
next:
  millrace test %s
  millrace run %s
  echo '{"text": "fire"}' | millrace produce %s --tag urgent     # in another window
`, filepath.Join(dir, files[1].name), job, name)

	return nil
}
