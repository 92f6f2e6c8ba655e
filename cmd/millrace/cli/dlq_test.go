package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/cli"
)

// pickyJob rejects what has no amount; its dead letters go to a topic of its own.
const pickyJob = `
name: pay
broker: { embedded: DIR/data }
source: { topic: in }
retry: { attempts: 2, delay: [1ms], dead_letter: graves }
channels:
  check:
    stages:
      - switch:
          - { when: body.amount == nil, reject: it has no amount }
    routes: [write]
  write:
    sink: { topic: out }
`

// buried is a world in which the job has buried two of four messages.
func buried(t *testing.T) *world {
	t.Helper()

	w := setup(t)
	w.write("job.yaml", pickyJob)
	w.ok("", "topics", "create", "in", "--queues", "1")
	w.ok(`{"id":"a","key":"k","tag":"t","props":{"p":"v"},"body":{"n":1}}
{"id":"b","body":{"amount":2}}
`, "produce", "in", "--json")
	w.drain() // so that the first letter is the first
	w.ok(`{"id":"c","body":"text \u001b[2J"}
{"id":"d","body":{"amount":4}}
`, "produce", "in", "--json")
	w.drain()

	return w
}

// drain runs the job until it has done what there is.
func (w *world) drain() {
	w.t.Helper()
	w.ok("", "run", w.path("job.yaml"), "--until-end")
}

func TestDeadLettersAreListedAndShown(t *testing.T) {
	t.Parallel()

	w := buried(t)

	list := w.ok("", "dlq", "ls")
	for _, want := range []string{"LETTER", "graves/0/0", "check/switch", "it has no amount", "graves/0/1"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list has no %q:\n%s", want, list)
		}
	}

	one := w.ok("", "dlq", "show", "graves/0/0")
	for _, want := range []string{
		"graves/0/0  dead for ", "a  key k  tag t  born ", "in/0 at 0, of topic in, in group pay",
		"at check/switch, on attempt 1", "switch: it has no amount", "attempt  1  20", "p = v", `{"n":1}`,
	} {
		if !strings.Contains(one, want) {
			t.Errorf("the letter has no %q:\n%s", want, one)
		}
	}

	if strings.ContainsRune(w.ok("", "dlq", "show", "graves"), '\x1b') {
		t.Error("a body reaches the terminal as it is")
	}

	var shown map[string]any
	if err := json.Unmarshal([]byte(w.ok("", "dlq", "show", "graves/0/0", "--json")), &shown); err != nil {
		t.Fatal(err)
	}

	if shown["letter"] != "graves/0/0" || shown["stage"] != "check/switch" || shown["group"] != "pay" || shown["topic"] != "in" ||
		shown["queue"] != "in/0" || shown["offset"] != "0" || shown["id"] != "a" || shown["attempts"] != 1.0 {
		t.Errorf("as JSON it is %v", shown)
	}

	for where, want := range map[string]int{
		`key == "k"`: 1, `error contains "amount" && stage == "check/switch"`: 1, `channel == "write"`: 0, `topic == "in"`: 2,
		`age < duration("1h") && attempts == 1`: 2, `age > duration("1h")`: 0, `text contains "text"`: 1, `props.p == "v"`: 1,
	} {
		if got := strings.Count(w.ok("", "dlq", "ls", "graves", "--json", "--where", where), "\n"); got != want {
			t.Errorf("%s holds for %d letters, want %d", where, got, want)
		}
	}

	if got := strings.Count(w.ok("", "dlq", "ls", "--json", "--max", "1"), "\n"); got != 1 {
		t.Errorf("--max 1 shows %d", got)
	}
}

func TestReplayedLettersAreDoneByTheirJobAndNotShownAgain(t *testing.T) {
	t.Parallel()

	w := buried(t)

	if got := w.ok("", "dlq", "replay", "graves", "--dry-run"); got != "2 dead letters would be replayed\n" {
		t.Errorf("a dry run says %q", got)
	}

	// The job is mended in the meantime.
	w.write("job.yaml", strings.ReplaceAll(pickyJob, "body.amount == nil", "false"))
	w.ok("", "dlq", "replay", "graves", "--where", `key == "k"`)

	list := w.ok("", "dlq", "ls")
	if strings.Contains(list, "graves/0/0") || !strings.Contains(list, "graves/0/1") {
		t.Errorf("after the replay of one the list is\n%s", list)
	}

	if list = w.ok("", "dlq", "ls", "--all"); !strings.Contains(list, "(settled) ") {
		t.Errorf("the list of all is\n%s", list)
	}

	w.drain()

	var got map[string]any

	lines := strings.Split(strings.TrimSpace(w.ok("", "consume", "out", "--json")), "\n")
	for _, line := range lines {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}

		if m["id"] == "a" {
			got = m
		}
	}

	if len(lines) != 3 || got == nil || got["key"] != "k" || got["tag"] != "t" {
		t.Errorf("the job has written\n%s", strings.Join(lines, "\n"))
	}

	if c := w.do("", "dlq", "replay", "graves/0/0"); c.code != cli.ExitFailed || !strings.Contains(c.err, "--again") {
		t.Errorf("replaying it again: exit code %d, %s", c.code, c.err)
	}

	w.ok("", "dlq", "replay", "graves/0/0", "--again", "--to", "in")
	w.ok("", "dlq", "replay", "graves", "--rate", "1000")
	w.drain()

	if got := strings.Count(w.ok("", "consume", "out"), "\n"); got != 5 {
		t.Errorf("the job has written %d messages in all, want 5", got)
	}

	if got := w.ok("", "dlq", "ls"); got != "no dead letters\n" {
		t.Errorf("in the end there are\n%s", got)
	}
}

func TestAReplayThatFailsAgainIsANewLetterThatSaysSo(t *testing.T) {
	t.Parallel()

	w := buried(t)
	w.ok("", "dlq", "replay", "graves")
	w.drain()

	list := w.ok("", "dlq", "ls", "--json")
	if strings.Count(list, "\n") != 2 || strings.Count(list, `"replays":1`) != 2 || strings.Count(list, `"topic":"in"`) != 2 {
		t.Errorf("after a replay in vain the list is\n%s", list)
	}
}

func TestAReplayForTheFailedChannelSkipsTheOthers(t *testing.T) {
	t.Parallel()

	w := setup(t)
	text := `
name: pay
broker: { embedded: DIR/data }
source: { topic: in }
channels:
  all:
    routes: [copy, check]
  copy:
    sink: { topic: copies }
  check:
    stages: [fail: it]
    sink: { topic: out }
`
	w.write("job.yaml", text)
	w.ok("", "topics", "create", "in", "--queues", "1")
	w.ok("x\n", "produce", "in")
	w.drain()
	w.write("job.yaml", strings.ReplaceAll(text, "[fail: it]", "[upper]"))
	w.ok("", "dlq", "replay", "%DLQ%pay", "--failed-channel")
	w.drain()

	if copies, out := w.ok("", "consume", "copies"), w.ok("", "consume", "out"); copies != "x\n" || out != "X\n" {
		t.Errorf("copies are %q and out is %q, want one each", copies, out)
	}
}

func TestDroppedLettersAreNotShownAgain(t *testing.T) {
	t.Parallel()

	w := buried(t)

	if c := w.do("", "dlq", "drop", "graves"); c.code != cli.ExitUsage || !strings.Contains(c.err, "use --yes") {
		t.Errorf("without an answer: exit code %d, %s", c.code, c.err)
	}

	w.ok("no\n", "dlq", "drop", "graves")

	if got := strings.Count(w.ok("", "dlq", "ls", "--json"), "\n"); got != 2 {
		t.Fatalf("%d letters are left although nobody agreed", got)
	}

	w.ok("y\n", "dlq", "drop", "graves/0/1")

	if list := w.ok("", "dlq", "ls"); strings.Contains(list, "graves/0/1") || !strings.Contains(list, "graves/0/0") {
		t.Errorf("after the drop of one the list is\n%s", list)
	}

	w.ok("", "dlq", "drop", "graves", "--yes")

	if got := w.ok("", "dlq", "ls"); got != "no dead letters\n" {
		t.Errorf("in the end there are\n%s", got)
	}
}

func TestAnEditedLetterIsReplayedAsChanged(t *testing.T) {
	w := buried(t)

	if got := w.do("", "dlq", "edit", "graves/0/0", "--key", "k"); got.code != cli.ExitOK || !strings.Contains(got.err, "nothing has been changed") {
		t.Errorf("a change of nothing: exit code %d, %s", got.code, got.err)
	}

	w.ok("", "dlq", "edit", "graves/0/1", "--body", `{"amount":3}`, "--key", "other", "--prop", "by=hand")

	editor := w.write("editor.sh", "#!/bin/sh\nsed -i 's/\"n\": 1/\"amount\": 1/' \"$1\"\n")
	if err := os.Chmod(editor, 0o700); err != nil {
		t.Fatal(err)
	}

	t.Setenv("VISUAL", editor)
	w.ok("", "dlq", "edit", "graves/0/0")
	w.drain()

	out := w.ok("", "consume", "out", "--json")
	for _, want := range []string{`"body":{"amount":3}`, `"key":"other"`, `"by":"hand"`, `"amount": 1`} {
		if !strings.Contains(strings.ReplaceAll(out, `"amount":1`, `"amount": 1`), want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}

	if got := w.ok("", "dlq", "ls"); got != "no dead letters\n" {
		t.Errorf("in the end there are\n%s", got)
	}
}

// The same is done by way of a running job's endpoint, which needs its token here.
func TestDeadLettersAreReachedByTheEndpoint(t *testing.T) {
	w := buried(t)
	w.write("job.yaml", strings.ReplaceAll(pickyJob, "body.amount == nil", "false"))

	variables := map[string]string{"MILLRACE_ADMIN_TOKEN": "sixteen bytes and more"}
	j := w.startWith(variables, "run", w.path("job.yaml"), "--admin", "127.0.0.1:0")
	address := j.endpoint()

	dlq := func(args ...string) call {
		var out, errs bytes.Buffer

		c := command(strings.NewReader("y\n"), &out, &errs, nil)
		c.Variables.Lookup = lookup(variables)
		code := c.Run(t.Context(), append(append([]string{"dlq"}, args...), "--admin", address)...)

		return call{code: code, out: out.String(), err: errs.String()}
	}

	if c := w.do("", "status"); c.code != cli.ExitOK {
		t.Fatalf("by the broker's directory: %s", c.err)
	}

	if c := dlq("ls"); strings.Count(c.out, "check/switch") != 2 {
		t.Errorf("the list is\n%s%s", c.out, c.err)
	}

	if here, there := w.ok("", "dlq", "show", "graves/0/0", "--json"), dlq("show", "graves/0/0", "--json").out; here != there {
		t.Errorf("here it shows\n%sthere\n%s", here, there)
	}

	if c := dlq("replay", "graves/0/9"); c.code != cli.ExitFailed || !strings.Contains(c.err, "there is no letter graves/0/9") {
		t.Errorf("exit code %d, %s", c.code, c.err)
	}

	if c := dlq("drop", "graves", "--where", `error contains "nothing"`); !strings.Contains(c.err, "dropped 0 dead letters") {
		t.Errorf("exit code %d, %s", c.code, c.err)
	}

	editor := w.write("editor.sh", "#!/bin/sh\nsed -i 's/\"n\": 1/\"amount\": 77/; s/\"v\"/\"w\"/' \"$1\"\n")
	if err := os.Chmod(editor, 0o700); err != nil {
		t.Fatal(err)
	}

	t.Setenv("VISUAL", editor)

	if c := dlq("edit", "graves/0/0"); c.code != cli.ExitOK {
		t.Errorf("exit code %d, %s", c.code, c.err)
	}

	if c := dlq("replay", "graves/0/0"); c.code != cli.ExitFailed || !strings.Contains(c.err, "--again") {
		t.Errorf("what was replayed before: exit code %d, %s", c.code, c.err)
	}

	if c := dlq("replay", "graves", "--dry-run"); c.out != "1 dead letter would be replayed\n" {
		t.Errorf("a dry run says %q, %s", c.out, c.err)
	}

	if c := dlq("replay", "graves"); !strings.Contains(c.err, "replayed 1 dead letter\n") {
		t.Errorf("exit code %d, %s", c.code, c.err)
	}

	follower := w.start("consume", "out", "--follow", "--json", "--max", "4")
	if code := follower.end(); code != cli.ExitOK || !strings.Contains(follower.out.String(), "77") || !strings.Contains(follower.out.String(), `"p":"w"`) {
		t.Errorf("exit code %d\n%s", code, follower.out.String())
	}

	j.interrupt()

	if code := j.end(); code != cli.ExitOK {
		t.Errorf("exit code %d\n%s", code, j.err.String())
	}
}

func TestDeadLettersAreReachedBesideARunningJob(t *testing.T) {
	t.Parallel()

	w := buried(t)
	w.write("job.yaml", strings.ReplaceAll(pickyJob, "body.amount == nil", "false"))

	j := w.start("run", w.path("job.yaml"))
	j.err.await(t, "running")
	w.ok("", "dlq", "replay", "graves")

	follower := w.start("consume", "out", "--follow", "--max", "4")
	if code := follower.end(); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}

	j.interrupt()

	if code := j.end(); code != cli.ExitOK {
		t.Errorf("exit code %d\n%s", code, j.err.String())
	}
}

func TestWrongUseOfDlqIsToldWithItsCure(t *testing.T) {
	t.Parallel()

	w := buried(t)

	for line, want := range map[string]string{
		"dlq lst":                                 `there is no command "lst"; did you mean "ls"?`,
		"dlq show":                                "requires at least 1 arg(s)",
		"dlq show graves/0/9":                     "there is no letter graves/0/9",
		"dlq ls --where stge=='a'":                `unknown name "stge"; did you mean "stage"?`,
		"dlq ls --where age":                      "",
		"dlq edit graves --key x":                 "is no letter",
		"dlq ls nosuch":                           `no topic "nosuch"`,
		"dlq replay graves --to nosuch":           `no topic "nosuch"`,
		"dlq replay graves --rate -1":             "use 0 for no limit",
		"dlq edit graves/0/0 --prop millrace.x=1": "millrace's own",
	} {
		c := w.do("", strings.Fields(line)...)
		if c.code == cli.ExitOK || !strings.Contains(c.err, want) {
			t.Errorf("millrace %s: exit code %d, want %q, got\n%s%s", line, c.code, want, c.err, c.out)
		}
	}
}
