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
	options    Options
	dir, lib   string // of the name server
	port       int
}

// Open is Start for programs: dir is an existing directory for the servers' files, and whoever calls it calls Close. After an
// error nothing is left running.
func Open(ctx context.Context, dir string, o Options) (*Cluster, error) {
	cluster := &Cluster{}
	if err := cluster.start(ctx, dir, o); err != nil {
		cluster.kill()

		return nil, err
	}

	return cluster, nil
}

// Close ends all servers at once and waits for that.
func (c *Cluster) Close() { c.kill() }

// ClassPath returns where the classes of the servers and of RocketMQ's own client are, as java takes it with -cp.
func (c *Cluster) ClassPath() string { return filepath.Join(c.lib, "*") }

// StopNameServer ends the name server. Clients and brokers go on with the routes that they know.
func (c *Cluster) StopNameServer(t testing.TB) {
	t.Helper()

	c.nameServer.kill()
}

// StartNameServer starts the name server again, at the same address, and returns when the brokers are known to it. They
// register by themselves: within ten seconds, the interval that the defaults here give them.
func (c *Cluster) StartNameServer(t testing.TB) {
	t.Helper()

	if err := c.launchNameServer(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, b := range c.Brokers {
		if err := b.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
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

	tls, err := writeTLS(dir, o)
	if err != nil {
		return err
	}

	o.tls = tls
	c.options, c.lib, c.dir = o, lib, filepath.Join(dir, "namesrv")

	if err := c.startNameServer(ctx); err != nil {
		return err
	}

	for i := range o.Brokers {
		name := "b" + strconv.Itoa(i)
		b := &Broker{Name: name, nameServer: c.NameServer, dir: filepath.Join(dir, name), lib: lib, options: o}
		c.Brokers = append(c.Brokers, b)

		if err := b.open(ctx); err != nil {
			return err
		}
	}

	return nil
}

func (c *Cluster) startNameServer(ctx context.Context) error {
	if err := makeHome(c.dir); err != nil {
		return err
	}

	var last error

	for range attempts {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}

		c.port, c.NameServer = port, address(port)

		if last = c.launchNameServer(ctx); last == nil {
			return nil
		}

		c.kill()
	}

	return fmt.Errorf("rocketmqtest: the name server does not start: %w", last)
}

// launchNameServer starts the name server on its port and returns when it answers.
func (c *Cluster) launchNameServer(ctx context.Context) error {
	config := map[string]string{
		"listenPort": strconv.Itoa(c.port), "bindAddress": loopback, "kvConfigPath": filepath.Join(c.dir, "kvConfig.json"),
	}

	file, err := writeConfig(c.dir, config)
	if err != nil {
		return err
	}

	c.nameServer, err = server{
		name: "namesrv", dir: c.dir, lib: c.lib, jvm: append([]string{"-Xms32m", "-Xmx128m"}, c.options.tls.jvm...),
		main: "org.apache.rocketmq.namesrv.NamesrvStartup", args: []string{"-c", file},
	}.start(ctx)
	if err != nil {
		return err
	}

	return c.nameServer.ready(ctx, c.options.client(), func(ctx context.Context, client *remoting.Client) error {
		return answers(ctx, client, c.NameServer, routeOf("any"))
	})
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
