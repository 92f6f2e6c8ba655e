package rocketmq_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
	"github.com/millrace/millrace/pipeline"
)

// RocketMQ's own producer fills a topic, plain, compressed in each way, and in a batch; a job reads it, rejects one message
// after three deliveries, and RocketMQ's own tools are asked about all that.
func TestToolsOfRocketMQSeeTheJob(t *testing.T) {
	t.Parallel()

	const (
		group, topic = "citizens", "city"
		sent         = 7
	)

	cluster := rocketmqtest.Start(t, rocketmqtest.Options{})
	b := openBus(t, rocketmq.Options{
		NameServers: []string{cluster.NameServer}, DelayLevels: realLevels(), CallTimeout: loaded, DialTimeout: loaded,
	})
	createTopic(t, cluster, b, topic, 1)
	cluster.Java(t, "rocketmqtest/testdata/Produce.java", topic)

	c := &citizen{tags: map[string]int{}, all: make(chan struct{}), want: sent - 1}

	r, err := actors.Start(pipeline.Job{
		Name: group, Source: pipeline.Source{Topics: []string{topic}},
		Retry:    pipeline.RetryPolicy{Attempts: 3, Delays: []time.Duration{time.Second}},
		Channels: []pipeline.Channel{{Name: "c", Stages: []pipeline.Stage{pipeline.Func("judge", c.judge)}, Sink: pipeline.SinkFunc(c.write)}},
	}, b, actors.Options{CommitEvery: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}

	dead := make(chan *actors.MessageDead, 1)
	r.OnEvent(func(e actors.Event) {
		if e, ok := e.(*actors.MessageDead); ok {
			dead <- e
		}
	})

	<-c.all

	buried := <-dead
	if buried.Attempts != 3 {
		t.Errorf("dead after %d attempts", buried.Attempts)
	}

	if c.tags["NONE"] != 1 || c.tags["BATCH"] != 3 || c.tags["LZ4"] != 1 || c.tags["ZSTD"] != 1 {
		t.Errorf("the job was given %v", c.tags)
	}

	connections := cluster.Admin(t, "consumerConnection", "-g", group)
	for _, text := range []string{"GO", "CLUSTERING", "CONSUME_PASSIVELY", topic, "%RETRY%" + group} {
		if !strings.Contains(connections, text) {
			t.Errorf("consumerConnection does not show %q:\n%s", text, connections)
		}
	}

	if report := r.Drain(loaded); !report.Clean {
		t.Errorf("not clean: %+v", report)
	}

	progress := cluster.Admin(t, "consumerProgress", "-g", group)
	if !strings.Contains(progress, "Diff Total: 0") {
		t.Errorf("consumerProgress shows a lag:\n%s", progress)
	}

	letter := cluster.Admin(t, "queryMsgByOffset", "-t", "%DLQ%"+group, "-b", "b0", "-i", "0", "-o", "0")
	for _, text := range []string{buried.MessageID, "DLQ_ORIGIN_TOPIC=" + topic, "DLQ_ORIGIN_MESSAGE_ID="} {
		if !strings.Contains(letter, text) {
			t.Errorf("the dead letter does not show %q:\n%s", text, letter)
		}
	}
}

// citizen is what the job does.
type citizen struct {
	mu   sync.Mutex
	tags map[string]int
	all  chan struct{} // closed when all came
	want int
}

func (c *citizen) judge(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	if m.Tag == "ZLIB" {
		return errors.New("never")
	}

	return emit(m)
}

func (c *citizen) write(_ context.Context, batch []*pipeline.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	for _, m := range batch {
		if m.Tag == "BATCH" && len(m.Body) == 2 || string(m.Body) == strings.Repeat("x", 10_000) {
			c.tags[m.Tag]++
		}

		c.want--

		if c.want == 0 {
			close(c.all)
		}
	}

	return nil
}
