package cli_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/standard"
)

// A command with plugins of your own is a call of Main: os.Exit(cli.Main(standard.Register, mine.Register)). Here is one that
// leaves its process alone.
func ExampleCommand() {
	command := cli.Command{
		Register: []func(*plugins.Registry) error{standard.Register},
		In:       strings.NewReader("name: quakes\nbroker: { embed: ./data }\n"),
		Out:      os.Stdout,
		Err:      os.Stdout,
	}

	fmt.Println(command.Run(context.Background(), "lint", "-"))
	// Output:
	// -:1:1   the job has no source; add source: { topic: … }
	// -:1:1   the job has no channels; add channels: with at least one
	// -:2:11  unknown key "embed" in broker; there are: embedded, rocketmq
	// 3
}
