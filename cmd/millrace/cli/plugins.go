package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

func (a *app) pluginsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "plugins [NAME]",
		Short:   "List the plugins that job files can use, or explain one",
		GroupID: groupJobs,
		Example: `  millrace plugins
  millrace plugins file`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return a.pluginNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				a.listPlugins()

				return nil
			}

			found := a.registry.Find(args[0])
			if len(found) == 0 {
				return fmt.Errorf("there is no plugin %q; %s", args[0], pipeline.Suggest(args[0], a.pluginNames()))
			}

			for i, p := range found {
				if i > 0 {
					_, _ = fmt.Fprintln(a.Out)
				}

				explain(a.Out, p)
			}

			return nil
		},
	}
}

func (a *app) pluginNames() []string {
	var names []string
	for _, p := range a.registry.Describe() {
		names = append(names, p.Name)
	}

	return names
}

func (a *app) listPlugins() {
	var rows [][]string

	for _, kind := range []plugins.Kind{plugins.Transform, plugins.Gather, plugins.Sink} {
		for _, p := range a.registry.Describe() {
			if p.Kind == kind {
				rows = append(rows, []string{string(kind), p.Name, p.Summary})
			}
		}
	}

	_, _ = io.WriteString(a.Out, table(rows))
}

// explain writes what there is to know of a plugin.
func explain(w io.Writer, p plugins.Description) {
	_, _ = fmt.Fprintf(w, "%s (%s): %s\n", p.Name, p.Kind, p.Summary)

	if p.Text != "" {
		_, _ = fmt.Fprintf(w, "\n%s\n", wrapped(p.Text))
	}

	if len(p.Options) > 0 {
		_, _ = fmt.Fprintf(w, "\nOptions:\n%s", table(optionRows(p.Options, "  ")))
	}

	if len(p.Metrics) > 0 {
		rows := make([][]string, len(p.Metrics))
		for i, m := range p.Metrics {
			rows[i] = []string{"  " + m.Name, m.Help}
		}

		_, _ = fmt.Fprintf(w, "\nCounts:\n%s", table(rows))
	}

	if p.Example != "" {
		_, _ = fmt.Fprintf(w, "\nExample:\n  %s\n", strings.ReplaceAll(strings.TrimSpace(p.Example), "\n", "\n  "))
	}
}

// optionRows returns a row for each option, and those of its elements indented below it.
func optionRows(options []plugins.Option, indent string) [][]string {
	var rows [][]string

	for _, o := range options {
		rows = append(rows, []string{indent + o.Name, takes(o), strings.TrimSpace(o.Help + standing(o))})
		rows = append(rows, optionRows(o.Options, indent+"  ")...)
	}

	return rows
}

// takes says what an option takes.
func takes(o plugins.Option) string {
	what := o.Type
	if len(o.Values) > 0 {
		what = strings.Join(o.Values, " | ")
	}

	switch {
	case o.List:
		return "list of " + what
	case o.Table:
		return "table of " + what
	default:
		return what
	}
}

// standing says what there is to know of an option beside its help.
func standing(o plugins.Option) string {
	switch {
	case o.Required && o.Main:
		return " Required; may stand alone."
	case o.Required:
		return " Required."
	case o.Main && o.Default != "":
		return " Default " + o.Default + "; may stand alone."
	case o.Main:
		return " May stand alone."
	case o.Default != "":
		return " Default " + o.Default + "."
	default:
		return ""
	}
}

// wrapped breaks text into lines of at most 100 characters.
func wrapped(text string) string {
	const width = 100

	var (
		b      strings.Builder
		column int
	)

	for i, paragraph := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')

			column = 0
		}

		for word := range strings.FieldsSeq(paragraph) {
			switch n := len([]rune(word)); {
			case column == 0:
				column = n
			case column+1+n > width:
				b.WriteByte('\n')

				column = n
			default:
				b.WriteByte(' ')

				column += 1 + n
			}

			b.WriteString(word)
		}
	}

	return b.String()
}
