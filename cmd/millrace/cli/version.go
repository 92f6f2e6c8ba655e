package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version of millrace and of Go",
		GroupID: groupOther,
		Example: "  millrace version",
		RunE: func(*cobra.Command, []string) error {
			_, _ = fmt.Fprintln(a.Out, version())

			return nil
		},
	}
}

// version says what this binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "millrace, built without module information"
	}

	version := info.Main.Version
	for _, d := range info.Deps {
		if d.Path == "github.com/millrace/millrace" {
			version = d.Version // a command with plugins of its own
		}
	}

	revision, dirty := "", ""

	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = ", revision " + s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = " with changes"
		}
	}

	return "millrace " + version + revision + dirty + ", " + info.GoVersion
}
