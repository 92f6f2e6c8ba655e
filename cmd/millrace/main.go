// Command millrace runs job files, and looks after the broker that they run on. `millrace help` says more.
package main

import (
	"os"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/plugins/redis"
	"github.com/millrace/millrace/plugins/standard"
)

func main() {
	redis.Quiet()
	os.Exit(cli.Main(standard.Register))
}
