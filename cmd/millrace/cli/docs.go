package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
)

func (a *app) docsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "docs jobfile|cli",
		Short:   "Write the reference of job files or of this command, in Markdown",
		GroupID: groupOther,
		Long: `Docs writes what there is to know of job files, with the plugins of this command, or of the command itself.
A command with plugins of your own so documents them, too.`,
		Example:   "  millrace docs jobfile > jobfile.md",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"jobfile", "cli"},
		RunE: func(cmd *cobra.Command, args []string) error {
			text := cliReference(cmd.Root())

			if args[0] == "jobfile" {
				var err error
				if text, err = jobfileReference(a.registry); err != nil {
					return fmt.Errorf("docs: %w", err)
				}
			}

			if _, err := io.WriteString(a.Out, text); err != nil {
				return fmt.Errorf("docs: %w", err)
			}

			return nil
		},
	}
}

// cliReference documents the commands.
func cliReference(root *cobra.Command) string {
	var b strings.Builder

	b.WriteString("# The command\n\nWritten by `millrace docs cli`; a change belongs into the commands themselves.\n\n" +
		fenced("", root.Long))

	for _, group := range root.Groups() {
		b.WriteString("\n| " + strings.TrimSuffix(group.Title, ":") + " | |\n|---|---|\n")

		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID && documented(cmd) {
				fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", cmd.Name(), anchor(cmd), cmd.Short)
			}
		}
	}

	writeCommands(&b, root)

	return b.String()
}

func documented(cmd *cobra.Command) bool {
	return cmd.IsAvailableCommand() && cmd.Name() != "help" && cmd.Name() != "completion"
}

func anchor(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func writeCommands(b *strings.Builder, parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if !documented(cmd) {
			continue
		}

		fmt.Fprintf(b, "\n## %s\n\n%s.\n\n%s", cmd.CommandPath(), cmd.Short, fenced("", cmd.UseLine()))

		if cmd.Long != "" {
			b.WriteString("\n" + paragraphs(cmd.Long))
		}

		if cmd.Example != "" {
			b.WriteString("\n" + fenced("", unindented(cmd.Example)))
		}

		if rows := flagRows(cmd); len(rows) > 0 {
			b.WriteString("\n| flag | |\n|---|---|\n")

			for _, row := range rows {
				b.WriteString("| " + row[0] + " | " + row[1] + " |\n")
			}
		}

		writeCommands(b, cmd)
	}
}

// flagRows lists the flags of a command, with those that it has from its parents.
func flagRows(cmd *cobra.Command) [][2]string {
	var rows [][2]string

	visit := func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}

		value, usage := pflag.UnquoteUsage(f)

		name := "`--" + f.Name
		if value != "" {
			name += " " + value
		}

		name += "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}

		switch f.DefValue {
		case "", "false", "0", "[]":
		default:
			usage += " (default " + f.DefValue + ")"
		}

		rows = append(rows, [2]string{name, usage})
	}

	cmd.LocalFlags().VisitAll(visit)
	cmd.InheritedFlags().VisitAll(visit)

	return rows
}

// fenced returns text as a block of code.
func fenced(language, text string) string {
	return "```" + language + "\n" + strings.TrimRight(text, "\n") + "\n```\n"
}

// paragraphs returns text with its indented parts as blocks of code, as help is written.
func paragraphs(text string) string {
	var b strings.Builder

	for i, part := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}

		if strings.HasPrefix(part, "  ") {
			b.WriteString(fenced("", unindented(part)))
		} else {
			b.WriteString(part + "\n")
		}
	}

	return b.String()
}

func unindented(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "  "), "\n  ", "\n")
}

// jobfileReference documents job files and the plugins of a registry.
func jobfileReference(registry *plugins.Registry) (string, error) {
	var b strings.Builder

	intro, err := templates.ReadFile("template/jobfile.md")
	if err != nil {
		return "", err //nolint:wrapcheck // the caller says where it is from
	}

	onPlugins, err := templates.ReadFile("template/plugins.md")
	if err != nil {
		return "", err //nolint:wrapcheck // as above
	}

	b.Write(intro)

	for _, part := range []struct {
		title, text string
		keys        []plugins.Option
	}{
		{"A job", "", jobfile.Keys()},
		{"A channel", "", jobfile.ChannelKeys()},
		{"A route", "A route may also be the name of a channel alone, which then gets every message.", jobfile.RouteKeys()},
		{"The embedded broker", "Its directory may stand alone: `broker: { embedded: ./data }`.", jobfile.EmbeddedKeys()},
		{
			"RocketMQ", "The address of its name server may stand alone: `broker: { rocketmq: \"127.0.0.1:9876\" }`. " +
				"[docs/rocketmq.md](rocketmq.md) says how jobs behave on it.", jobfile.RocketMQKeys(),
		},
	} {
		b.WriteString("\n## " + part.title + "\n\n")

		if part.text != "" {
			b.WriteString(part.text + "\n\n")
		}

		b.WriteString(keyTable(part.keys))
	}

	b.WriteString("\n" + string(onPlugins))

	all := registry.Describe()

	for _, kind := range []struct {
		kind  plugins.Kind
		title string
	}{{plugins.Transform, "Stages"}, {plugins.Gather, "Gathers"}, {plugins.Sink, "Sinks"}} {
		if !slices.ContainsFunc(all, func(p plugins.Description) bool { return p.Kind == kind.kind }) {
			continue
		}

		b.WriteString("\n## " + kind.title + "\n")

		for _, p := range all {
			if p.Kind == kind.kind {
				writePlugin(&b, p)
			}
		}
	}

	return b.String(), nil
}

func writePlugin(b *strings.Builder, p plugins.Description) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n", p.Name, p.Summary)

	if p.Text != "" {
		b.WriteString("\n" + p.Text + "\n")
	}

	if p.Example != "" {
		b.WriteString("\n" + fenced("yaml", strings.TrimSpace(p.Example)))
	}

	if len(p.Options) > 0 {
		b.WriteString("\n" + keyTable(p.Options))
	}

	if len(p.Metrics) > 0 {
		b.WriteString("\n| counts | |\n|---|---|\n")

		for _, m := range p.Metrics {
			fmt.Fprintf(b, "| `%s` | %s |\n", m.Name, cell(m.Help))
		}
	}
}

// keyTable lists keys or options, with those of a table below it.
func keyTable(keys []plugins.Option) string {
	var b strings.Builder

	b.WriteString("| key | takes | |\n|---|---|---|\n")
	keyRows(&b, keys, "")

	return b.String()
}

func keyRows(b *strings.Builder, keys []plugins.Option, path string) {
	for _, key := range keys {
		help := strings.TrimSpace(key.Help + standing(key))
		fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", path, key.Name, cell(takes(key)), cell(help))

		inner := path + key.Name + "."
		if key.List {
			inner = path + key.Name + "[]."
		}

		keyRows(b, key.Options, inner)
	}
}

// cell makes text fit into a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "|", "\\|"), "\n", " ")
}
