package rocketmq_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
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

	c := &citizen{tags: map[string]int{}, all: make(chan struct{}), want: sent - 1, again: make(chan *pipeline.Message, 10)}

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

	id := onlyMember(t, b, cluster, group)
	alive := cluster.Java(t, "rocketmqtest/testdata/Admin.java",
		"consumerConnection -g "+group, "consumerStatus -g "+group, "consumerStatus -g "+group+" -i "+id,
		"queryMsgByOffset -t %DLQ%"+group+" -b b0 -i 0 -o 0", "queryMsgByOffset -t %RETRY%"+group+" -b b0 -i 0 -o 0")
	shows(t, alive, "GO", "CLUSTERING", "CONSUME_PASSIVELY", topic, "%RETRY%"+group, id,
		"Same subscription in the same group", "Rebalance OK", "commitOffset=7",
		"UNIQ_KEY="+buried.MessageID, "DLQ_ORIGIN_TOPIC="+topic, "RETRY_TOPIC="+topic)

	offsetsAreTold(t, b, cluster, id)
	c.healed.Store(true)
	letterIsTakenAgain(t, cluster, c, alive, id, buried.MessageID)

	replayIsSentBack(t, b, c)

	if report := r.Drain(loaded); !report.Clean {
		t.Errorf("not clean: %+v", report)
	}

	after := cluster.Java(t, "rocketmqtest/testdata/Admin.java", "consumerProgress -g "+group)
	shows(t, after, "Diff Total: 0")
}

// offsetsAreTold has the broker ask the job's member how far it is, which consoles do by a request that mqadmin has no command for.
func offsetsAreTold(t *testing.T, b *bus, cluster *rocketmqtest.Cluster, member string) {
	t.Helper()

	const askStatus = 223

	answer, err := b.client.Call(t.Context(), cluster.Brokers[0].Addr, &remoting.Command{
		Code: askStatus, Ext: map[string]string{"group": "citizens", "topic": "city", "clientAddr": ""},
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{member, `"topic":"city"`, "}:7"} {
		if !strings.Contains(string(answer.Body), want) {
			t.Errorf("the members' offsets are %s, without %q", answer.Body, want)
		}
	}
}

// letterIsTakenAgain has the tools find a dead letter, and what it is a copy of, by the ids that were printed of it, and send it
// again: to the group alone, as consoles do it, and the first of its copies to its topic.
func letterIsTakenAgain(t *testing.T, cluster *rocketmqtest.Cluster, c *citizen, printed, member, unique string) {
	t.Helper()

	const group, topic = "citizens", "city"

	id := func(before string) string {
		match := regexp.MustCompile(before + `\s*([0-9A-F]{32})`).FindStringSubmatch(printed)
		if match == nil {
			t.Fatalf("mqadmin shows no id behind %q:\n%s", before, printed)
		}

		return match[1]
	}

	dead, first, last := id("OffsetID:"), id("[ {]ORIGIN_MESSAGE_ID="), id("DLQ_ORIGIN_MESSAGE_ID=")

	found := cluster.Java(t, "rocketmqtest/testdata/Admin.java",
		"queryMsgById -t "+topic+" -i "+last, "queryMsgByUniqueKey -t %DLQ%"+group+" -i "+unique,
		"queryMsgById -t %DLQ%"+group+" -i "+dead+" -g "+group+" -d "+member, "queryMsgById -t "+topic+" -i "+first+" -s true")
	shows(t, found, "Reconsume Times:     2", "Topic:               %DLQ%"+group, "consumeResult=CR_SUCCESS",
		"it is in %RETRY%"+group, "sendStatus=SEND_OK")

	for _, from := range []pipeline.Queue{
		{Topic: "%RETRY%" + group, Broker: "b0"}, {Topic: topic, Broker: "b0"},
	} {
		m := <-c.again
		if m.Origin.Queue != from || m.Topic != topic || m.ID != unique || m.Origin.Delivery != 1 {
			t.Errorf("from %s came %s of %s, %+v", from, m.ID, m.Topic, m.Origin)
		}

		if replays := m.Props[consumer.PropReplays]; (replays == "1") != (from.Topic != topic) || m.Props[consumer.PropDeadError] != "" {
			t.Errorf("from %s came %v", from, m.Props)
		}
	}
}

// replayIsSentBack publishes as a replay does, to the group's retry topic. When that fails and the broker copies it, which then names
// the retry topic as its origin, the job still knows where it is from.
func replayIsSentBack(t *testing.T, b *bus, c *citizen) {
	t.Helper()

	const group, topic = "citizens", "city"

	if err := b.Publish(t.Context(), consumer.RetryTopic(group), []*pipeline.Message{{
		ID: "replayed", Tag: "AGAIN", Body: []byte("x"),
		Props: map[string]string{consumer.PropOriginTopic: topic, consumer.PropReplays: "1"},
	}}); err != nil {
		t.Fatal(err)
	}

	m := <-c.again
	if m.ID != "replayed" || m.Topic != topic || m.Origin.Delivery != 2 || m.Props[consumer.PropReplays] != "1" {
		t.Errorf("what was sent back came as %s of %s, %+v with %v", m.ID, m.Topic, m.Origin, m.Props)
	}
}

// shows checks that what a tool prints has all of the texts.
func shows(t *testing.T, printed string, texts ...string) {
	t.Helper()

	for _, text := range texts {
		if !strings.Contains(printed, text) {
			t.Errorf("mqadmin does not show %q:\n%s", text, printed)
		}
	}
}

// onlyMember returns the id that the broker has for the group's only member.
func onlyMember(t *testing.T, b *bus, cluster *rocketmqtest.Cluster, group string) string {
	t.Helper()

	answer, err := b.client.Call(t.Context(), cluster.Brokers[0].Addr, &remoting.Command{
		Code: remoting.GetConsumerList, Ext: map[string]string{"consumerGroup": group},
	})
	if err != nil {
		t.Fatal(err)
	}

	_, id, _ := strings.Cut(string(answer.Body), `["`)
	id, _, _ = strings.Cut(id, `"`)

	return id
}

// citizen is what the job does.
type citizen struct {
	mu   sync.Mutex
	tags map[string]int
	all  chan struct{} // closed when all came
	want int
	// healed says that everything is taken from now on; again is where what failed once is put then.
	healed atomic.Bool
	again  chan *pipeline.Message
}

func (c *citizen) judge(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	if m.Tag == "ZLIB" && !c.healed.Load() || m.Tag == "AGAIN" && m.Origin.Delivery == 1 {
		return errors.New("never")
	}

	return emit(m)
}

func (c *citizen) write(_ context.Context, batch []*pipeline.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	for _, m := range batch {
		if m.Tag == "ZLIB" || m.Tag == "AGAIN" {
			c.again <- m.Clone()

			continue
		}

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
