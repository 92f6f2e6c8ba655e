// Command mill is millrace with a plugin of its own.
package main

import (
	"os"

	"example.com/mill/mentions"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/plugins/standard"
)

func main() { os.Exit(cli.Main(standard.Register, mentions.Register)) }
