package rocketmqtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// attempts is how often a server is started when somebody else takes its ports meanwhile.
const attempts = 3

// Cluster is a name server with its brokers.
type Cluster struct {
	// NameServer is the name server's address.
	NameServer string
	// Brokers are the brokers, b0 first.
	Brokers []*Broker

	nameServer *process
}

// Start starts what the options say and returns when all of it is ready. It ends with the test: the servers are killed when
// the cleanups that were registered after this call have run. The test is skipped where Java or Maven is missing, unless
// the environment has CI set, and fails when something else is wrong.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()

	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}

		if os.Getenv("CI") != "" {
			t.Fatalf("rocketmqtest: no %s here, which CI must have", tool)
		}

		t.Skipf("rocketmqtest: no %s here: nothing is tried on a real RocketMQ", tool)
	}

	cluster := &Cluster{}
	dir := t.TempDir() // before the cleanup that ends those who write to it

	t.Cleanup(cluster.kill)

	if err := cluster.start(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}

	return cluster
}

func (c *Cluster) start(ctx context.Context, dir string, o Options) error {
	o, err := o.orDefaults()
	if err != nil {
		return err
	}

	lib, err := library(ctx, o.Version)
	if err != nil {
		return err
	}

	if err := c.startNameServer(ctx, filepath.Join(dir, "namesrv"), lib); err != nil {
		return err
	}

	for i := range o.Brokers {
		name := "b" + strconv.Itoa(i)
		b := &Broker{Name: name, nameServer: c.NameServer, dir: filepath.Join(dir, name), lib: lib, config: o.Config}
		c.Brokers = append(c.Brokers, b)

		if err := b.open(ctx); err != nil {
			return err
		}
	}

	return nil
}

func (c *Cluster) startNameServer(ctx context.Context, dir, lib string) error {
	if err := makeHome(dir); err != nil {
		return err
	}

	var last error

	for range attempts {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}

		config := map[string]string{
			"listenPort": strconv.Itoa(port), "bindAddress": loopback, "kvConfigPath": filepath.Join(dir, "kvConfig.json"),
		}

		file, err := writeConfig(dir, config)
		if err != nil {
			return err
		}

		p, err := server{
			name: "namesrv", dir: dir, lib: lib, jvm: []string{"-Xms32m", "-Xmx128m"},
			main: "org.apache.rocketmq.namesrv.NamesrvStartup", args: []string{"-c", file},
		}.start(ctx)
		if err != nil {
			return err
		}

		c.nameServer, c.NameServer = p, address(port)

		last = p.ready(ctx, func(ctx context.Context, client *remoting.Client) error {
			return answers(ctx, client, c.NameServer, routeOf("any"))
		})
		if last == nil {
			return nil
		}

		p.kill()
	}

	return fmt.Errorf("rocketmqtest: the name server does not start: %w", last)
}

// kill ends everything at once.
func (c *Cluster) kill() {
	for _, b := range c.Brokers {
		if b.process != nil {
			b.process.kill()
		}
	}

	if c.nameServer != nil {
		c.nameServer.kill()
	}
}
