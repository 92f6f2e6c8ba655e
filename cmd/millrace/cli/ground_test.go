package cli_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/producer"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/pipeline"
)

func TestJobsRunOnRocketMQ(t *testing.T) {
	t.Parallel()

	fake, err := rocketmqfake.New(rocketmqfake.Options{TCP: true})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(fake.Close)
	fake.CreateTopic("in", 2)
	fake.CreateTopic("out", 1)

	p, err := producer.New(producer.Options{NameServers: []string{fake.NameServer}})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = p.Close() })

	for body, tag := range map[string]string{"a": "x", "b": "y"} {
		if _, err := p.Send(t.Context(), "in", producer.Message{Tag: tag, Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}

	w := setup(t)
	file := w.write("job.yaml", `
name: upper
broker: { rocketmq: { name_servers: `+fake.NameServer+`, tags: { in: x } } }
source: { topic: in }
channels:
  work: { stages: [ upper ], sink: { topic: out } }
`)

	run := w.start("run", file)
	got := readOne(t, fake, "out")
	run.interrupt()

	if code := run.end(); code != cli.ExitOK || got != "A" {
		t.Errorf("exit code %d, output %q\n%s", code, got, run.err)
	}

	if c := w.do("", "run", "--until-end", file); c.code != cli.ExitUsage || !strings.Contains(c.err, "--until-end") {
		t.Errorf("with --until-end: exit code %d\n%s", c.code, c.err)
	}

	fake.StopNameServer()

	if c := w.do("", "run", file); c.code == cli.ExitOK || !strings.Contains(c.err, fake.NameServer) {
		t.Errorf("without a name server: exit code %d\n%s", c.code, c.err)
	}
}

// readOne waits for the first message of a topic of one queue and returns its body.
func readOne(t *testing.T, fake *rocketmqfake.Cluster, topic string) string {
	t.Helper()

	broker, err := rocketmq.Open(rocketmq.Options{NameServers: []string{fake.NameServer}, OffsetDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = broker.Close() })

	member, err := broker.Join(t.Context(), consumer.Subscription{
		Group: "reader", Topics: []string{topic}, Broadcast: true, Instance: "reader",
	})
	if err != nil {
		t.Fatal(err)
	}

	assignment, err := member.Assigned(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}

	for from := pipeline.Offset(0); ; {
		batch, err := member.Pull(t.Context(), assignment.Leases[0], from, consumer.Limit{Messages: 1, Bytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}

		if len(batch.Messages) > 0 {
			return string(batch.Messages[0].Body)
		}

		from = batch.Next
	}
}
