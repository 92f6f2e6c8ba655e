package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

const rootText = `millrace runs job files: what to consume, through which stages, and where to write.

  millrace init            write a job file to begin with
  millrace lint job.yaml   every mistake, with its line and its cure
  millrace run job.yaml    run it; ^C drains and says what is left

Exit codes: 0 done, 1 failed, 2 wrong command line, 3 mistakes in a job file, 4 stopped with messages unfinished (they come
again), 5 a test of a job failed, 130 stopped at once by a second ^C.`

// Groups of commands in the help.
const (
	groupJobs   = "jobs"
	groupBroker = "broker"
	groupOther  = "other"
)

// app is one run of the command with its plugins.
type app struct {
	*Command

	registry *plugins.Registry
}

// root returns the tree of commands.
func (c *Command) root(registry *plugins.Registry) *cobra.Command {
	a := &app{Command: c, registry: registry}
	root := &cobra.Command{
		Use:           "millrace",
		Short:         "Multi-stage streaming jobs from job files",
		Long:          rootText,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          unknownCommand,
	}

	root.AddGroup(
		&cobra.Group{ID: groupJobs, Title: "Jobs:"},
		&cobra.Group{ID: groupBroker, Title: "Messages and the broker:"},
		&cobra.Group{ID: groupOther, Title: "Other:"},
	)
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if !cmd.HasParent() {
			return usagef("%w; `%s --help` lists the flags", err, cmd.Name())
		}

		return usagef("%s: %w; `%s --help` lists the flags", cmd.Name(), err, cmd.CommandPath())
	})

	root.AddCommand(
		a.runCommand(), a.lintCommand(), a.testCommand(), a.statusCommand(), a.whyCommand(), a.pluginsCommand(),
		a.pauseCommand(), a.resumeCommand(), a.seekCommand(), a.drainCommand(),
		a.produceCommand(), a.consumeCommand(), a.topicsCommand(), a.offsetsCommand(), a.dlqCommand(),
		a.initCommand(), a.newCommand(), a.schemaCommand(), a.docsCommand(), a.versionCommand(),
	)

	for _, cmd := range root.Commands() {
		strict(cmd)
	}

	return root
}

// strict makes what is wrong with the arguments of a command an error of usage in one line.
func strict(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		check = cobra.NoArgs
	}

	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if cmd.HasSubCommands() && len(args) > 0 && check(cmd, args) != nil {
			return unknownCommand(cmd, args)
		}

		if err := check(cmd, args); err != nil {
			return usagef("%s: %w; it is used like this: %s", cmd.Name(), err, cmd.UseLine())
		}

		return nil
	}

	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

// unknownCommand shows the help, or says that there is no such command.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help() //nolint:wrapcheck // of writing the help
	}

	var names []string

	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}

	slices.Sort(names)

	return usagef("there is no command %q; %s", args[0], pipeline.Suggest(args[0], names))
}
