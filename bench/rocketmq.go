package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/producer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

// What is promised of reading messages of 1 KiB that lie in a broker of RocketMQ: messages a second of a bare loop, where the
// broker has to share two cores with it, and its seconds of processor time a million; what a whole job reaches of it; and what
// that is beside other consumers.
const (
	minBare        = 220_000
	maxBareCPU     = 3.5
	minOfBare      = 0.9
	minOfClientGo  = 1.4
	maxCPUOfGo     = 0.5
	minOfJava      = 2
	maxRocketMQ    = 400_000 // messages
	readTimeout    = 3 * time.Minute
	rocketmqTopic  = "kib"
	clockTicks     = 100 // a second, in which Linux counts processor time
	ticksInStat    = 11  // the field of them, counted behind the name of the program
	shareRocketMQ  = 10
	fillBatch      = 1024
	brokerMemory   = "-Xmx1g"
	brokerCompiler = "-XX:TieredStopAtLevel=4"
)

//go:embed Consume.java
var consumeJava []byte

// rocketmqBench is the cluster that all sides read from.
type rocketmqBench struct {
	o        options
	cluster  *rocketmqtest.Cluster
	scratch  string
	messages int
	groups   int
}

// readTime is what one side took in one round.
type readTime struct {
	rate, cpu, mallocs, broker float64 // all but the first a message; processor times in seconds a million
}

// rocketmqWork lets a job, a bare loop and other consumers read the same messages by turns, each with a group of its own.
func rocketmqWork(o options) (lines []line, err error) {
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			return []line{newLine("rocketmq", "left out, there is no "+tool, 0, "")}, nil
		}
	}

	scratch, err := os.MkdirTemp(o.dir, "bench-rocketmq-")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}

	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()

	ctx := context.Background()

	cluster, err := rocketmqtest.Open(ctx, scratch, rocketmqtest.Options{JVM: []string{brokerMemory, brokerCompiler}})
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer cluster.Close()

	b := &rocketmqBench{
		o: o, cluster: cluster, scratch: scratch, messages: min(o.messages/shareRocketMQ, maxRocketMQ),
	}
	if err := b.fill(); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}

	if err := os.WriteFile(b.java(), consumeJava, 0o600); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}

	return b.rounds(ctx)
}

// rounds reads by turns, when the broker has warmed up, and returns the medians.
func (b *rocketmqBench) rounds(ctx context.Context) ([]line, error) {
	for range 2 {
		if _, err := b.read(ctx, readBare); err != nil {
			return nil, fmt.Errorf("warming up: %w", err)
		}
	}

	sides := map[string][]readTime{}

	for range b.o.rounds {
		for _, side := range []string{readBare, readActors, readGo, readJava} {
			t, err := b.read(ctx, side)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", side, err)
			}

			sides[side] = append(sides[side], t)
		}
	}

	rate := func(t readTime) float64 { return t.rate }
	cpu := func(t readTime) float64 { return t.cpu }
	of := func(value func(readTime) float64, side string) float64 { return medianOf(sides[side], value) }
	ratio := func(value func(readTime) float64, side string) float64 {
		ratios := make([]float64, len(sides[side]))
		for i, t := range sides[side] {
			ratios[i] = value(sides[readActors][i]) / value(t)
		}

		return median(ratios)
	}
	mallocs := func(t readTime) float64 { return t.mallocs }
	broker := func(t readTime) float64 { return t.broker }

	return []line{
		newLine("rocketmq", "1 KiB, three identity stages, actors", of(rate, readActors), "msg/s"),
		newLine("rocketmq", "a bare loop of pulls", of(rate, readBare), "msg/s").atLeast(minBare),
		newLine("rocketmq", "actors / bare loop", ratio(rate, readBare), "").atLeast(minOfBare),
		newLine("rocketmq", "actors, CPU of a million", of(cpu, readActors), "s"),
		newLine("rocketmq", "a bare loop, CPU of a million", of(cpu, readBare), "s").atMost(maxBareCPU),
		newLine("rocketmq", "the broker beside it, CPU of a million", of(broker, readBare), "s"),
		newLine("rocketmq", "allocations a message, actors", of(mallocs, readActors), ""),
		newLine("rocketmq", "allocations a message, bare loop", of(mallocs, readBare), ""),
		newLine("rocketmq", "rocketmq-client-go, push", of(rate, readGo), "msg/s"),
		newLine("rocketmq", "actors / rocketmq-client-go", ratio(rate, readGo), "").atLeast(minOfClientGo),
		newLine("rocketmq", "rocketmq-client-go, CPU of a million", of(cpu, readGo), "s"),
		newLine("rocketmq", "CPU of actors / rocketmq-client-go", ratio(cpu, readGo), "").atMost(maxCPUOfGo),
		newLine("rocketmq", "Java, push", of(rate, readJava), "msg/s"),
		newLine("rocketmq", "actors / Java", ratio(rate, readJava), "").atLeast(minOfJava),
		newLine("rocketmq", "Java, CPU of a million", of(cpu, readJava), "s"),
	}, nil
}

func medianOf(times []readTime, value func(readTime) float64) float64 {
	values := make([]float64, len(times))
	for i, t := range times {
		values[i] = value(t)
	}

	return median(values)
}

// read has one side read everything.
func (b *rocketmqBench) read(ctx context.Context, side string) (readTime, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()

	command, err := b.command(ctx, side)
	if err != nil {
		return readTime{}, err
	}

	var out, complaints bytes.Buffer

	command.Stdout, command.Stderr = &out, &complaints

	before := b.brokerTime()

	if err := command.Run(); err != nil {
		return readTime{}, fmt.Errorf("%w\n%s", err, complaints.String())
	}

	after := b.brokerTime()

	last := bytes.TrimSpace(out.Bytes()) // Java prints how its log is configured before
	last = last[bytes.LastIndexByte(last, '\n')+1:]

	var t taken
	if err := json.Unmarshal(last, &t); err != nil {
		return readTime{}, fmt.Errorf("it printed %q: %w", last, err)
	}

	n := float64(int64(b.messages) - skipped(b.messages))

	return readTime{
		rate: n / t.Seconds, cpu: t.CPU / n * million, mallocs: t.Mallocs / n,
		broker: (after - before).Seconds() / float64(b.messages) * million,
	}, nil
}

func (b *rocketmqBench) command(ctx context.Context, side string) (*exec.Cmd, error) {
	b.groups++
	group := "bench-" + strconv.Itoa(b.groups)

	if side == readJava {
		return exec.CommandContext(ctx, "java", //nolint:gosec // our own arguments
			"-Xmx512m", "-Duser.home="+b.scratch, "-cp", b.cluster.ClassPath(),
			b.java(), b.cluster.NameServer, rocketmqTopic, group,
			strconv.FormatInt(skipped(b.messages), 10), strconv.Itoa(b.messages)), nil
	}

	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}

	r := reading{
		NameServer: b.cluster.NameServer, Broker: b.cluster.Brokers[0].Addr,
		Topic: rocketmqTopic, Group: group, Messages: b.messages,
	}
	if b.o.profiles != "" {
		r.Profile = filepath.Join(b.o.profiles, side+".pprof")
	}

	what, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}

	return exec.CommandContext(ctx, self, "read", side, string(what)), nil //nolint:gosec // ourselves
}

func (b *rocketmqBench) java() string { return filepath.Join(b.scratch, "Consume.java") }

// brokerTime returns what the broker has used of the processor; 0 where the system does not say.
func (b *rocketmqBench) brokerTime() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.cluster.Brokers[0].PID()))
	if err != nil {
		return 0
	}

	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	user, _ := strconv.Atoi(string(fields[ticksInStat]))
	system, _ := strconv.Atoi(string(fields[ticksInStat+1]))

	return time.Duration(user+system) * time.Second / clockTicks
}

// fill stores the messages.
func (b *rocketmqBench) fill() error {
	ctx := context.Background()

	c := remoting.NewClient(remoting.Options{})
	defer c.Close()

	_, err := c.Call(ctx, b.cluster.Brokers[0].Addr, &remoting.Command{Code: remoting.UpdateTopic, Ext: map[string]string{
		"topic": rocketmqTopic, "defaultTopic": "TBW102", "readQueueNums": strconv.Itoa(queues),
		"writeQueueNums": strconv.Itoa(queues), "perm": "6",
		"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
	}})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}

	p, err := producer.New(producer.Options{NameServers: []string{b.cluster.NameServer}})
	if err != nil {
		return fmt.Errorf("producer: %w", err)
	}

	defer func() { _ = p.Close() }()

	bodies := newBodies()
	batch := make([]producer.Message, fillBatch)

	for at := 0; at < b.messages; at += fillBatch {
		batch = batch[:min(fillBatch, b.messages-at)]
		for i := range batch {
			batch[i] = producer.Message{Key: strconv.Itoa(at + i), Tag: rocketmqTopic, Body: bodies[(at+i)%len(bodies)]}
		}

		if _, err := p.SendBatch(ctx, rocketmqTopic, batch); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}

	return nil
}
