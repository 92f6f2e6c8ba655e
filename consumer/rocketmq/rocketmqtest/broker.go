package rocketmqtest

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// Broker is one broker of a cluster, a master. Tests may end it and start it again; only one goroutine at a time may.
type Broker struct {
	// Name is the broker's name, Addr its address, which stays the same over restarts.
	Name, Addr string

	nameServer string
	dir, lib   string
	options    Options
	port       int
	process    *process
}

// Stop has the broker end in order, which takes about ten seconds, and waits for that.
func (b *Broker) Stop(t testing.TB) {
	t.Helper()

	if err := b.process.stop(); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the broker as a crash would.
func (b *Broker) Kill(t testing.TB) {
	t.Helper()

	b.process.kill()
}

// Start starts the broker again after Stop or Kill, with the store that it left, and returns when it is ready.
func (b *Broker) Start(t testing.TB) {
	t.Helper()

	if err := b.launch(t.Context()); err != nil {
		t.Fatal(err)
	}

	if err := b.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// PID returns the number of the broker's process, which each start makes anew.
func (b *Broker) PID() int { return b.process.raw.Pid }

// Configure changes settings of the running broker, by their names in broker.conf; brokerPermission=4, for instance, makes it
// read-only. The broker also writes them to its file, from which the next Start does not take them.
func (b *Broker) Configure(t testing.TB, settings map[string]string) {
	t.Helper()

	client := b.client()
	defer client.Close()

	request := &remoting.Command{Code: updateBrokerConfig, Body: []byte(properties(settings))}
	if _, err := client.Call(t.Context(), b.Addr, request); err != nil {
		t.Fatal(err)
	}
}

// client returns one for questions to the running broker, which is patient.
func (b *Broker) client() *remoting.Client {
	o := b.options.client()
	o.CallTimeout = readyTimeout

	return remoting.NewClient(o)
}

// open starts the broker for the first time.
func (b *Broker) open(ctx context.Context) error {
	var last error

	for range attempts {
		port, err := freePort(ctx, fastOffset, replicationOffset)
		if err != nil {
			return err
		}

		b.port, b.Addr = port, address(port)

		if err := b.launch(ctx); err != nil {
			return err
		}

		if last = b.wait(ctx); last == nil {
			return nil
		}

		b.process.kill()
	}

	return fmt.Errorf("rocketmqtest: %s does not start: %w", b.Name, last)
}

// launch starts the process.
func (b *Broker) launch(ctx context.Context) error {
	if err := makeHome(b.dir); err != nil {
		return err
	}

	config := b.defaults()
	maps.Copy(config, signatures(b.options))
	maps.Copy(config, b.options.Config)

	file, err := writeConfig(b.dir, config)
	if err != nil {
		return err
	}

	b.process, err = server{
		name: b.Name, dir: b.dir, lib: b.lib,
		jvm: slices.Concat(
			[]string{"-Xms128m", "-Xmx384m", "-XX:MaxDirectMemorySize=256m"}, b.options.tls.jvm, b.options.JVM),
		main: "org.apache.rocketmq.broker.BrokerStartup", args: []string{"-c", file},
	}.start(ctx)

	return err
}

// wait returns when the broker answers and the name server knows it.
func (b *Broker) wait(ctx context.Context) error {
	question := &remoting.Command{Code: remoting.GetConsumerList, Ext: map[string]string{"consumerGroup": "nobody"}}

	return b.process.ready(ctx, b.options.client(), func(ctx context.Context, client *remoting.Client) error {
		if err := answers(ctx, client, b.Addr, question); err != nil {
			return err
		}

		err := registered(ctx, client, b.nameServer, b.Name)
		if err != nil {
			register(ctx, client, b.Addr)
		}

		return err
	})
}

// defaults are the settings of a small broker that retries quickly and is in no hurry with the disk.
func (b *Broker) defaults() map[string]string {
	const yes = "true"

	store := filepath.Join(b.dir, "store")

	return map[string]string{
		"brokerClusterName":           "C",
		"brokerName":                  b.Name,
		"brokerId":                    "0",
		"brokerRole":                  "ASYNC_MASTER",
		"flushDiskType":               "ASYNC_FLUSH",
		"namesrvAddr":                 b.nameServer,
		"brokerIP1":                   loopback, // what it tells clients; by itself it may take one that they cannot reach
		"bindAddress":                 loopback,
		"listenPort":                  strconv.Itoa(b.port),
		"storePathRootDir":            store,
		"storePathCommitLog":          filepath.Join(store, "commitlog"),
		"autoCreateTopicEnable":       yes,
		"autoCreateSubscriptionGroup": yes,
		"defaultTopicQueueNums":       "4",
		"enablePropertyFilter":        yes,
		"messageDelayLevel":           "1s 1s 1s 2s 2s 2s 3s 3s 3s 4s 4s 4s 5s 5s 5s 6s 6s 6s",
		"mappedFileSizeCommitLog":     "67108864",
		"mappedFileSizeConsumeQueue":  "600000",
		"maxHashSlotNum":              "10000", // the index would take 400 MB of (sparse) file by itself
		"maxIndexNum":                 "40000",
		"timerWheelEnable":            "false", // delays of any length, 140 MB; the levels above do not need it
		"diskMaxUsedSpaceRatio":       "95",
		"fileReservedTime":            "48",
		"sendMessageThreadPoolNums":   "4",
		"pullMessageThreadPoolNums":   "4",
		"waitTimeMillsInSendQueue":    "2000", // for slow disks, like the next
		"osPageCacheBusyTimeOutMills": "5000",
	}
}
