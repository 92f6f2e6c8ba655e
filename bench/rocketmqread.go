package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"

	client "github.com/apache/rocketmq-client-go/v2"
	push "github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/pipeline"
)

// The readers of a topic.
const (
	readBare   = "bare"
	readActors = "actors"
	readGo     = "go"
	readJava   = "java"
)

// heapRoom is what readers hold and never touch, as `millrace run` does, so that small heaps are not collected all the time.
// Java's heap begins larger than that.
const heapRoom = 64 << 20

// reading is what a reader reads. A process of its own does it, so that what it uses can be told from what others do.
type reading struct {
	NameServer string `json:"nameServer"`
	Broker     string `json:"broker"` // the address
	Topic      string `json:"topic"`
	Group      string `json:"group"`
	Messages   int    `json:"messages"`
	// Profile is where to write a CPU profile; empty means nowhere.
	Profile string `json:"profile"`
}

// read is what such a process does: it reads everything and writes what that took.
func read(side, what string, out io.Writer) (err error) {
	var r reading
	if err := json.Unmarshal([]byte(what), &r); err != nil {
		return fmt.Errorf("bench: read: %w", err)
	}

	if r.Profile != "" {
		file, err := os.Create(r.Profile)
		if err != nil {
			return fmt.Errorf("bench: %w", err)
		}

		defer func() { err = errors.Join(err, file.Close()) }()

		if err := pprof.StartCPUProfile(file); err != nil {
			return fmt.Errorf("bench: %w", err)
		}

		defer pprof.StopCPUProfile()
	}

	defer runtime.KeepAlive(make([]byte, heapRoom))

	m := newMeter(r.Messages)

	switch side {
	case readBare:
		err = r.bare(m)
	case readActors:
		err = r.actors(m)
	case readGo:
		err = r.clientGo(m)
	default:
		err = fmt.Errorf("there is no reader %q", side)
	}

	if err == nil && m.took.Seconds == 0 {
		err = fmt.Errorf("%d of %d messages have arrived", m.seen.Load(), r.Messages)
	}

	if err == nil {
		err = json.NewEncoder(out).Encode(m.took)
	}

	if err != nil {
		return fmt.Errorf("bench: read: %w", err)
	}

	return nil
}

// actors is a whole job of three identity stages.
func (r reading) actors(m *meter) (err error) {
	b, err := rocketmq.Open(rocketmq.Options{NameServers: []string{r.NameServer}})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}

	defer func() { err = errors.Join(err, b.Close()) }()

	job := newJob(pipeline.SinkFunc(func(_ context.Context, batch []*pipeline.Message) error {
		m.add(len(batch))

		return nil
	}))
	job.Source.Topics, job.Source.Group = []string{r.Topic}, r.Group

	running, err := actors.Start(job, b, actors.Options{})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}

	select {
	case <-m.full:
	case <-running.Stopped():
	}

	return running.Drain(0).Err
}

// bare pulls and decodes, a goroutine a queue, and does nothing else.
func (r reading) bare(m *meter) error {
	c := remoting.NewClient(remoting.Options{})
	defer c.Close()

	decoder, err := record.NewDecoder(record.Limits{})
	if err != nil {
		return fmt.Errorf("decoder: %w", err)
	}

	ends := make(chan error, queues)

	for queue := range queues {
		go func() { ends <- r.bareQueue(c, decoder, queue, m) }()
	}

	for range queues {
		err = errors.Join(err, <-ends)
	}

	return err
}

func (r reading) bareQueue(c *remoting.Client, d *record.Decoder, queue int, m *meter) error {
	request := &remoting.Command{Code: remoting.PullMessage, Ext: map[string]string{
		"consumerGroup": r.Group, "topic": r.Topic, "queueId": strconv.Itoa(queue), "maxMsgNums": "32", "sysFlag": "4",
		"commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*", "expressionType": "TAG", "subVersion": "1",
	}}

	for next := int64(0); ; {
		request.Ext["queueOffset"] = strconv.FormatInt(next, 10)

		answer, err := c.Call(context.Background(), r.Broker, request, remoting.PullNotFound)
		if err != nil {
			return fmt.Errorf("pull: %w", err)
		}

		if answer.Code == remoting.PullNotFound {
			return nil // the end
		}

		records, _, err := d.Decode(answer.Body, next)
		if err != nil {
			return fmt.Errorf("decode: %w", err)
		}

		if next, err = strconv.ParseInt(answer.Ext["nextBeginOffset"], 10, 64); err != nil {
			return fmt.Errorf("pull: %w", err)
		}

		m.add(len(records))
	}
}

// clientGo is the push consumer of rocketmq-client-go.
func (r reading) clientGo(m *meter) error {
	rlog.SetLogLevel("error")

	c, err := client.NewPushConsumer(
		push.WithGroupName(r.Group), push.WithNameServer(primitive.NamesrvAddr{r.NameServer}),
		push.WithConsumeFromWhere(push.ConsumeFromFirstOffset), push.WithConsumerModel(push.Clustering),
		push.WithPullBatchSize(256), push.WithConsumeMessageBatchMaxSize(256))
	if err != nil {
		return fmt.Errorf("rocketmq-client-go: %w", err)
	}

	consume := func(_ context.Context, batch ...*primitive.MessageExt) (push.ConsumeResult, error) {
		m.add(len(batch))

		return push.ConsumeSuccess, nil
	}
	if err := c.Subscribe(r.Topic, push.MessageSelector{}, consume); err != nil {
		return fmt.Errorf("rocketmq-client-go: %w", err)
	}

	if err := c.Start(); err != nil {
		return fmt.Errorf("rocketmq-client-go: %w", err)
	}

	<-m.full

	return nil // the process ends now; the group is never used again
}
