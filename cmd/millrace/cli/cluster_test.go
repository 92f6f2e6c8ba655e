package cli_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

// await calls the command until its output holds a text: brokers answer before others see what was done.
func (w *world) await(text string, args ...string) string {
	w.t.Helper()

	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(100 * time.Millisecond) {
		c := w.do("", args...)
		if strings.Contains(c.out, text) {
			return c.out
		}

		if time.Now().After(deadline) {
			w.t.Fatalf("millrace %s never says %q:\n%s%s", strings.Join(args, " "), text, c.out, c.err)
		}
	}
}

func TestCommandsWorkOnRocketMQ(t *testing.T) {
	t.Parallel()

	c := rocketmqtest.Start(t, rocketmqtest.Options{})

	w := setup(t)
	w.broker = "rocketmq://" + c.NameServer

	messagesGoThrough(w)

	job := strings.ReplaceAll(pickyJob, "embedded: DIR/data", "rocketmq: "+c.NameServer)
	job = strings.ReplaceAll(job, ", dead_letter: graves", "")
	w.write("job.yaml", job)

	run := w.start("run", w.path("job.yaml"), "--admin", "127.0.0.1:0")
	lettersAreFound(w)
	lettersAreDroppedByTheJob(w, run.endpoint())
	w.await("MEMBERS", "offsets", "pay")

	if got := w.ok("", "offsets", "reset", "pay", "in@b0/0", "last"); !strings.HasSuffix(got, " → 4\n") {
		t.Errorf("the reset of a running group says %q", got)
	}

	run.interrupt()

	if code := run.end(); code != cli.ExitOK { // though no pull may have met the reset yet
		t.Errorf("the job that was reset ended with %d\n%s", code, run.err)
	}

	lettersAreSettled(w)

	w.write("job.yaml", strings.ReplaceAll(job, "body.amount == nil", "false"))
	follower := w.start("consume", "out", "--follow", "--json")
	run = w.start("run", w.path("job.yaml"))

	for _, text := range []string{`"n":1`, `"amount":9`, `"key":"edited"`} { // what was replayed, and what was changed before
		follower.out.await(t, text)
	}

	follower.interrupt()

	if code := follower.end(); code != cli.ExitOK {
		t.Errorf("who follows ended with %d\n%s", code, follower.err)
	}

	run.interrupt()

	if code := run.end(); code != cli.ExitOK {
		t.Fatalf("the mended job ended with %d\n%s", code, run.err)
	}

	if got := w.ok("", "offsets", "reset", "pay", "in", "first"); !strings.HasSuffix(got, " → 0\n") {
		t.Errorf("the reset of a stopped group says %q", got)
	}

	w.await(`"offset": 0,`, "offsets", "pay", "--json")
	lettersOfOthersAreShown(w, c)
}

// messagesGoThrough makes the topics, and publishes four messages, of which two have no amount.
func messagesGoThrough(w *world) {
	w.t.Helper()

	w.ok("", "topics", "create", "in", "--queues", "1")
	w.ok("", "topics", "create", "out", "--queues", "1")
	w.ok(`{"id":"a","key":"k","tag":"t","props":{"p":"v"},"body":{"n":1}}`, "produce", "in", "--json")
	w.ok(`{"id":"b","body":{"amount":2}}
{"id":"c","body":"text"}
{"id":"d","body":{"amount":4}}
`, "produce", "in", "--json")

	// The first is the first; of the others, which have no key, any may be the next.
	got := w.await(`"offset":3`, "consume", "in", "--json")
	if strings.Count(got, "\n") != 4 || !strings.Contains(got, `{"queue":"in@b0/0","offset":0,"id":"a","key":"k","tag":"t","props":{"p":"v"}`) {
		w.t.Errorf("consumed\n%s", got)
	}

	if got := w.ok("", "consume", "in", "--from", "1", "--max", "1"); strings.Count(got, "\n") != 1 || strings.Contains(got, `"n"`) {
		w.t.Errorf("one from offset 1 is %q", got)
	}

	for args, want := range map[string]string{
		"consume inn":              `there is no topic "inn"; did you mean "in"?`,
		"produce inn":              `there is no topic "inn"; did you mean "in"? (--create makes it)`,
		"offsets payy":             `there is no group "payy"`,
		"offsets reset x in first": `there is no group "x"`,
		"dlq ls %DLQ%x":            `there is no topic "%DLQ%x"`,
		"status":                   "millrace run --admin",
	} {
		if c := w.do("x\n", strings.Fields(args)...); c.code == cli.ExitOK || !strings.Contains(c.err, want) {
			w.t.Errorf("millrace %s: exit code %d, %s", args, c.code, c.err)
		}
	}
}

func lettersAreFound(w *world) {
	w.t.Helper()

	list := w.await("%DLQ%pay@b0/0/1", "dlq", "ls")
	if !strings.Contains(list, "check/switch") || !strings.Contains(list, "it has no amount") {
		w.t.Errorf("the list is\n%s", list)
	}

	// Which of the two was the first to fail is open.
	shown := w.ok("", "dlq", "show", "%DLQ%pay@b0/0/0", "%DLQ%pay@b0/0/1", "--where", `key == "k"`)
	for _, want := range []string{
		"a  key k  tag t  born ", "in@b0/0 at 0, of topic in, in group pay", "at check/switch, on attempt 1",
		"switch: it has no amount", "attempt  1  20", "p = v", `{"n":1}`,
	} {
		if !strings.Contains(shown, want) {
			w.t.Errorf("the letter has no %q:\n%s", want, shown)
		}
	}
}

// lettersAreDroppedByTheJob drops one letter by way of the running job, which has members of its own on the cluster.
func lettersAreDroppedByTheJob(w *world, address string) {
	w.t.Helper()

	at := []string{"--admin", address}

	if list := w.elsewhere(at, "dlq", "ls"); strings.Count(list, "%DLQ%pay@b0/0/") != 2 {
		w.t.Errorf("the job lists\n%s", list)
	}

	w.elsewhere(at, "dlq", "drop", "%DLQ%pay", "--where", `text == "text"`, "--yes")
}

// lettersAreSettled replays one letter and drops the other, unless that is done.
func lettersAreSettled(w *world) {
	w.t.Helper()

	w.ok("", "dlq", "drop", "%DLQ%pay", "--where", `text == "text"`, "--yes")

	if got := w.ok("", "dlq", "ls", "--json"); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"id":"a"`) {
		w.t.Errorf("after the drop the list is\n%s", got)
	}

	w.ok("", "dlq", "replay", "%DLQ%pay", "--rate", "50")
	w.ok("", "dlq", "edit", "%DLQ%pay@b0/0/0", "--again", "--body", `{"amount":9}`, "--key", "edited")

	if got := w.ok("", "dlq", "ls"); got != "no dead letters\n" {
		w.t.Errorf("in the end there are\n%s", got)
	}
}

// lettersOfOthersAreShown tries a dead letter as a broker makes it for a consumer of RocketMQ's own that has given up.
func lettersOfOthersAreShown(w *world, c *rocketmqtest.Cluster) {
	w.t.Helper()
	w.ok("", "topics", "create", "%DLQ%java", "--queues", "1")

	client := remoting.NewClient(remoting.Options{})
	defer client.Close()

	props := record.Join(map[string]string{
		record.PropRetryTopic: "orders", record.PropUniqueKey: "AC11", record.PropKeys: "k1", record.PropOriginID: "first",
	})

	_, err := client.Call(w.t.Context(), c.Brokers[0].Addr, &remoting.Command{
		Code: remoting.SendMessageV2, Body: []byte("lost"), Ext: map[string]string{
			"a": "p", "b": "%DLQ%java", "c": "TBW102", "d": "1", "e": "0", "f": "0", "h": "0", "i": string(props), "j": "3",
			"g": strconv.FormatInt(time.Now().UnixMilli(), 10), "k": "false", "m": "false",
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}

	shown := w.await("lost", "dlq", "show", "%DLQ%java")
	for _, want := range []string{"AC11  key k1", "topic orders, in group java", "3 times; its consumer has left no word why"} {
		if !strings.Contains(shown, want) {
			w.t.Errorf("the letter has no %q:\n%s", want, shown)
		}
	}

	w.ok("", "topics", "create", "orders", "--queues", "1")
	w.ok("", "dlq", "replay", "%DLQ%java", "--to", "orders")
	w.await(`"millrace.replays":"1"`, "consume", "orders", "--json")
}
