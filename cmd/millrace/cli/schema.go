package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/pipeline/jobfile"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Write the JSON Schema of job files, for editors",
		GroupID: groupOther,
		Long: `Schema writes a JSON Schema of job files with the plugins of this command. An editor that knows it completes keys,
plugins and options, and explains them. The YAML language server takes it from a line at the top of a job file:

  # yaml-language-server: $schema=millrace.schema.json`,
		Example: "  millrace schema > millrace.schema.json",
		RunE: func(*cobra.Command, []string) error {
			text, err := jobfile.Schema(a.registry)
			if err != nil {
				return err //nolint:wrapcheck // it says where it is from
			}

			if _, err := a.Out.Write(text); err != nil {
				return fmt.Errorf("schema: %w", err)
			}

			return nil
		},
	}
}
