package cli_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/consumer/rocketmq/producer"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
)

func TestJobsRunOnRocketMQ(t *testing.T) {
	t.Parallel()

	fake, err := rocketmqfake.New(rocketmqfake.Options{TCP: true})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(fake.Close)
	fake.CreateTopic("in", 2)

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
  work: { stages: [ upper ], sink: stdout }
`)

	run := w.start("run", file)
	run.out.await(t, "A\n")
	run.interrupt()

	if code := run.end(); code != cli.ExitOK || strings.Contains(run.out.String(), "B") {
		t.Errorf("exit code %d, output %q\n%s", code, run.out, run.err)
	}

	if c := w.do("", "run", "--until-end", file); c.code != cli.ExitUsage || !strings.Contains(c.err, "--until-end") {
		t.Errorf("with --until-end: exit code %d\n%s", c.code, c.err)
	}

	fake.StopNameServer()

	if c := w.do("", "run", file); c.code == cli.ExitOK || !strings.Contains(c.err, fake.NameServer) {
		t.Errorf("without a name server: exit code %d\n%s", c.code, c.err)
	}
}
