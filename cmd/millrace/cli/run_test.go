package cli_test

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/consumer/embedded"
)

func TestRunUntilEndWorksEverythingOff(t *testing.T) {
	t.Parallel()

	w := setup(t)
	file := w.write("job.yaml", upperJob)

	w.ok("", "topics", "create", "in", "--queues", "2")
	w.ok("a\nb\n\nc\n", "produce", "in", "--key", "k", "--tag", "t", "--prop", "p=1")

	c := w.do("", "run", "--until-end", file)
	if c.code != cli.ExitOK || c.out != "" {
		t.Fatalf("exit code %d\n%s%s", c.code, c.out, c.err)
	}

	for _, want := range []string{"made topic out with 4 queues", "upper: runs with 1 channel", "stopped clean", "nothing left unfinished"} {
		if !strings.Contains(c.err, want) {
			t.Errorf("it does not say %q:\n%s", want, c.err)
		}
	}

	if got := w.ok("", "consume", "out"); got != "A\nB\nC\n" {
		t.Errorf("the output is %q", got)
	}

	var m struct {
		Key   string            `json:"key"`
		Tag   string            `json:"tag"`
		Body  string            `json:"body"`
		Props map[string]string `json:"props"`
	}

	if err := json.Unmarshal([]byte(w.ok("", "consume", "out", "--json", "--max", "1")), &m); err != nil {
		t.Fatal(err)
	}

	if m.Key != "k" || m.Tag != "t" || m.Body != "A" || m.Props["p"] != "1" {
		t.Errorf("the first message is %+v", m)
	}

	if got := w.ok("", "offsets", "upper"); !strings.Contains(got, "in/0") && !strings.Contains(got, "in/1") {
		t.Errorf("the offsets are\n%s", got)
	}

	// Nothing is left, so nothing is done again.
	w.ok("", "run", "--until-end", "--quiet", file)

	if got := w.ok("", "consume", "out"); got != "A\nB\nC\n" {
		t.Errorf("after a second run the output is %q", got)
	}
}

func TestOtherCommandsWorkBesideARunningJob(t *testing.T) {
	t.Parallel()

	w := setup(t)
	run := w.start("run", w.write("job.yaml", upperJob))

	run.err.await(t, "upper: runs")

	follow := w.start("consume", "out", "--follow")

	w.ok("hello\n", "produce", "in", "--key", "k")
	follow.out.await(t, "HELLO\n")

	// What a sink has written is counted a moment later.
	const done = "upper  running   in 1   done 1   in flight 0   lag 0"

	status := w.ok("", "status")
	for began := time.Now(); !strings.Contains(status, done) && time.Since(began) < 10*time.Second; {
		status = w.ok("", "status")
	}

	if !strings.Contains(status, done) {
		t.Errorf("the status is\n%s", status)
	}

	if got := w.ok("", "why", "in"); strings.Count(got, "with nothing in flight") != 4 {
		t.Errorf("why says\n%s", got)
	}

	if got := w.ok("", "topics"); !strings.Contains(got, "in     4       1") {
		t.Errorf("the topics are\n%s", got)
	}

	w.ok("", "offsets", "reset", "upper", "in", "first")
	follow.out.await(t, "HELLO\n")

	follow.interrupt()

	if code := follow.end(); code != cli.ExitOK {
		t.Errorf("consume: exit code %d\n%s", code, follow.err)
	}

	run.interrupt()

	if code := run.end(); code != cli.ExitOK {
		t.Errorf("run: exit code %d\n%s", code, run.err)
	}

	if got := run.err.String(); !strings.Contains(got, "draining, up to 30s") || !strings.Contains(got, "stopped clean") {
		t.Errorf("run says\n%s", got)
	}
}

func TestARunServesItsAdminEndpoint(t *testing.T) {
	t.Parallel()

	w := setup(t)
	file := w.write("job.yaml", upperJob)

	if c := w.do("", "run", "--admin", "0.0.0.0:0", file); c.code != cli.ExitFailed || !strings.Contains(c.err, "needs a token") {
		t.Errorf("without a token: exit code %d\n%s", c.code, c.err)
	}

	run := w.start("run", "--admin", "127.0.0.1:0", file)
	run.err.await(t, "upper: runs")

	_, url, _ := strings.Cut(run.err.String(), "admin endpoint at ")
	url, _, _ = strings.Cut(url, "\n")

	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/jobs/upper/drain", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}

	r.Header.Set("Content-Type", "application/json")

	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}

	if err := answer.Body.Close(); err != nil || answer.StatusCode >= http.StatusBadRequest {
		t.Errorf("drain: %s, %v", answer.Status, err)
	}

	if code := run.end(); code != cli.ExitOK {
		t.Errorf("run: exit code %d\n%s", code, run.err)
	}
}

const stalledJob = `
name: stalled
broker: { embedded: DIR/data }
source: { topic: in }
channels:
  work:
    stages:
      - upper
      - { name: slow, stall: {} }
    sink: discard
`

func TestASecondInterruptStopsAtOnceAndSaysWhatIsLeft(t *testing.T) {
	t.Parallel()

	w := setup(t)
	w.ok("", "topics", "create", "in", "--queues", "1")
	w.ok("x\n", "produce", "in", "--key", "k7")

	run := w.start("run", "--json", w.write("job.yaml", stalledJob))

	run.out.await(t, `"inFlight":1`)

	why := w.ok("", "why", "in/0")
	for _, want := range []string{"in/0  stands at 0", "key k7  attempt 1 of 16", `channel work, lane 0, stage "slow": runs`, "cli_test.register"} {
		if !strings.Contains(why, want) {
			t.Errorf("why does not say %q:\n%s", want, why)
		}
	}

	run.interrupt()
	run.interrupt()

	if code := run.end(); code != cli.ExitInterrupted {
		t.Errorf("exit code %d\n%s", code, run.err)
	}

	lines := strings.Split(strings.TrimSpace(run.out.String()), "\n")

	var last struct {
		Event string `json:"event"`
		End   struct {
			Clean      bool `json:"clean"`
			Unfinished int  `json:"unfinished"`
		} `json:"end"`
	}

	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}

	if last.Event != "stopped" || last.End.Clean || last.End.Unfinished != 1 {
		t.Errorf("the last line is %s", lines[len(lines)-1])
	}
}

func TestADrainThatIsTooShortLeavesMessagesUnfinished(t *testing.T) {
	t.Parallel()

	w := setup(t)
	w.ok("", "topics", "create", "in", "--queues", "1")
	w.ok("x\n", "produce", "in")

	run := w.start("run", "--drain", "10ms", w.write("job.yaml", stalledJob))

	run.err.await(t, "in flight 1")
	run.interrupt()

	if code := run.end(); code != cli.ExitUnfinished {
		t.Errorf("exit code %d\n%s", code, run.err)
	}

	if got := run.err.String(); !strings.Contains(got, "1 message left unfinished, to come again") ||
		!strings.Contains(got, "in/0 at 0") {
		t.Errorf("it says\n%s", got)
	}
}

func TestNoOutputOfARunHasASecret(t *testing.T) {
	t.Parallel()

	for _, flags := range [][]string{{"--verbose"}, {"--json"}} {
		w := setup(t)
		w.ok("", "topics", "create", "in", "--queues", "1")
		w.ok("x\n", "produce", "in")

		c := w.do("", append([]string{"run", "--until-end", w.write("job.yaml", `
name: failing
broker: { embedded: DIR/data }
source: { topic: in }
channels:
  work:
    stages: [ { fail: ${PASSWORD} } ]
    sink: discard
`)}, flags...)...)

		if c.code != cli.ExitOK || !strings.Contains(c.out+c.err, "no entry with ***") {
			t.Errorf("exit code %d\n%s%s", c.code, c.out, c.err)
		}

		if strings.Contains(c.out+c.err, "hunter2") {
			t.Errorf("%v shows the secret:\n%s%s", flags, c.out, c.err)
		}
	}
}

func TestSeveralFilesRunOnOneBroker(t *testing.T) {
	t.Parallel()

	w := setup(t)
	first := w.write("first.yaml", upperJob)
	second := w.write("second.yaml", strings.NewReplacer("name: upper", "name: again", "topic: in", "topic: out", "name: out", "name: end").
		Replace(upperJob))
	other := w.write("other.yaml", strings.ReplaceAll(upperJob, "DIR/data", "DIR/other"))

	w.ok("", "topics", "create", "in", "--queues", "1")
	w.ok("a\n", "produce", "in")
	w.ok("", "run", "--until-end", first, second)

	if got := w.ok("", "consume", "end"); got != "A\n" {
		t.Errorf("the end is %q", got)
	}

	if c := w.do("", "run", first, other); c.code != cli.ExitFailed || !strings.Contains(c.err, "name different brokers") {
		t.Errorf("exit code %d\n%s", c.code, c.err)
	}
}

func TestACommandWaitsForABrokerThatIsBeingClosed(t *testing.T) {
	t.Parallel()

	w := setup(t)

	broker, err := embedded.Open(embedded.Options{Dir: w.path("data")})
	if err != nil {
		t.Fatal(err)
	}

	topics := w.start("topics")

	if err := broker.Close(); err != nil {
		t.Fatal(err)
	}

	if code := topics.end(); code != cli.ExitOK || !strings.Contains(topics.out.String(), "there are no topics") {
		t.Errorf("exit code %d\n%s", code, topics.err)
	}
}

func TestAJobThatCannotStartEndsTheRun(t *testing.T) {
	t.Parallel()

	w := setup(t)

	c := w.do("", "run", w.write("job.yaml", `
name: upper
broker: { embedded: { dir: DIR/data, topics: { in: 1 } } }
source: { topic: im }
channels: { work: { sink: discard } }
`))
	if c.code != cli.ExitFailed || !strings.Contains(c.err, `no topic "im"; there are: in`) {
		t.Errorf("exit code %d\n%s", c.code, c.err)
	}
}

func TestAJobWhoseSinkDoesNotOpenSaysSoAndIsInterrupted(t *testing.T) {
	t.Parallel()

	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	defer func() { _ = silent.Close() }()

	w := setup(t)
	j := w.start("run", w.write("job.yaml", `
name: pay
broker: { embedded: DIR/data }
source: { topic: in }
channels:
  write:
    sink: { sql: { dsn: "postgres://u:p@`+silent.Addr().String()+`/x", table: t, columns: { body: text } } }
`))
	j.err.await(t, "for the sink of channel write to open")
	j.interrupt()

	if code := j.end(); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}
