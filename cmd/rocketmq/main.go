// Command rocketmq starts a throw-away RocketMQ, a name server and a broker on free ports of this machine, prints the name
// server's address, and ends both with everything in them when it is interrupted. It needs Java 17 and, the first time,
// Maven, which fetches the servers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)

	stop()

	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "rocketmq:", err)
		os.Exit(1)
	}
}

// run starts the servers, and stops them when ctx ends.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("rocketmq", flag.ContinueOnError)
	version := flags.String("version", rocketmqtest.DefaultVersion, strings.Join(rocketmqtest.Versions(), ", "))
	brokers := flags.Int("brokers", 1, "how many brokers")

	if err := flags.Parse(args); err != nil {
		return err //nolint:wrapcheck // it is for the user as it is
	}

	dir, err := os.MkdirTemp("", "rocketmq-")
	if err != nil {
		return err //nolint:wrapcheck // it names the directory
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	_, err = fmt.Fprintf(out, "starting RocketMQ %s; the first time this fetches about 80 MB\n", *version)
	if err != nil {
		return err //nolint:wrapcheck // nobody reads us
	}

	cluster, err := rocketmqtest.Open(ctx, dir, rocketmqtest.Options{Version: *version, Brokers: *brokers})
	if err != nil {
		return err //nolint:wrapcheck // it names the package
	}
	defer cluster.Close()

	_, err = fmt.Fprintf(out, "name server at rocketmq://%s; Ctrl-C ends it and drops its messages\n", cluster.NameServer)
	if err != nil {
		return err //nolint:wrapcheck // nobody reads us
	}

	<-ctx.Done()

	return nil
}
