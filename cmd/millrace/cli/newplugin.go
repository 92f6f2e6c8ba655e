package cli

import (
	"fmt"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

func (a *app) newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "new",
		Short:   "Write code to begin with",
		GroupID: groupOther,
		Args:    cobra.ArbitraryArgs,
		RunE:    unknownCommand,
	}

	cmd.AddCommand(a.newPluginCommand())

	return cmd
}

func (a *app) newPluginCommand() *cobra.Command {
	var kind string

	cmd := &cobra.Command{
		Use:   "plugin [DIRECTORY/]NAME",
		Short: "Write a plugin in Go to begin with, and its test",
		Long: `New plugin writes a package into a directory of its name: options, documentation, a plugin that does
something, and a test that puts it through what every plugin must bear. It overwrites nothing.

docs/plugins.md goes on from there, to a command with all plugins and yours.`,
		Example: `  millrace new plugin mentions
  millrace new plugin ledger --kind sink`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.newPlugin(args[0], plugins.Kind(kind)) },
	}

	cmd.Flags().StringVar(&kind, "kind", string(plugins.Transform), "what it is used as: transform, gather or sink")

	return cmd
}

func (a *app) newPlugin(name string, kind plugins.Kind) error {
	dir, base := filepath.Clean(name), filepath.Base(name)

	if ok, _ := regexp.MatchString(`^[a-z][a-z0-9]*$`, base); !ok || token.IsKeyword(base) {
		return usagef("new plugin: the name is %q; use lower-case letters and digits, as it names a Go package", base)
	}

	kinds := []string{string(plugins.Transform), string(plugins.Gather), string(plugins.Sink)}

	var files []newFile

	for _, end := range []string{".go", "_test.go"} {
		text, err := templates.ReadFile("template/plugin/" + string(kind) + end + ".txt")
		if err != nil {
			return usagef("new plugin: there is no kind %q; %s", kind, pipeline.Suggest(string(kind), kinds))
		}

		files = append(files, newFile{name: base + end, text: strings.ReplaceAll(string(text), "NAME", base)})
	}

	if err := a.writeNew(dir, files); err != nil {
		return fmt.Errorf("new plugin: %w", err)
	}

	_, _ = fmt.Fprintf(a.Out, `
next:
  go test ./%s

the command with all plugins and this one is a main.go of its own:
  import %q
  func main() { os.Exit(cli.Main(standard.Register, %s.Register)) }
`, filepath.ToSlash(dir), importPath(dir), base)

	return nil
}

// importPath returns the path by which a directory is imported, as far as the module file above it says.
func importPath(dir string) string {
	full, err := filepath.Abs(dir)
	if err != nil {
		return filepath.ToSlash(dir)
	}

	for above := full; above != filepath.Dir(above); {
		above = filepath.Dir(above)

		content, err := os.ReadFile(filepath.Join(above, "go.mod")) //nolint:gosec // a module file
		if err != nil {
			continue
		}

		module := regexp.MustCompile(`(?m)^module\s+(\S+)`).FindSubmatch(content)
		if rest, err := filepath.Rel(above, full); err == nil && len(module) > 0 {
			return path.Join(string(module[1]), filepath.ToSlash(rest))
		}
	}

	return filepath.ToSlash(dir)
}
