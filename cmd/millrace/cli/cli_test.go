package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/pipeline/jobfile"
)

func TestWrongCommandLinesAreToldInOneLineWithTheCure(t *testing.T) {
	t.Parallel()

	w := setup(t)

	for line, want := range map[string]string{
		"rnu":                          `there is no command "rnu"; did you mean "run"?`,
		"run --drian 3":                "unknown flag: --drian; `millrace run --help` lists the flags",
		"run --drain 0s":               "--drain is 0s; use a time above 0",
		"run --drain soon":             "invalid argument",
		"produce":                      "requires at least 1 arg(s), only received 0; it is used like this: millrace produce TOPIC [FILE]",
		"consume a b":                  "accepts 1 arg(s), received 2",
		"consume in --from yesterday":  `"yesterday" is no position; use first, last, an offset`,
		"consume in --max -1":          "--max is -1; use 0 for all",
		"topics craete":                `there is no command "craete"; did you mean "create"?`,
		"offsets reset a":              "accepts 3 arg(s), received 1",
		"offsets reset a b soon":       `"soon" is no position`,
		"offsets reset a b/c first":    `"b/c" is no queue; write it like b/0`,
		"version now":                  "unknown command",
		"lint --jsn":                   "unknown flag: --jsn",
		"--jsn":                        "millrace: unknown flag: --jsn; `millrace --help`",
		"plugins file topic":           "accepts at most 1 arg(s), received 2",
		"topics create in --queues no": "invalid argument",
	} {
		c := w.do("", strings.Fields(line)...)
		if c.code != cli.ExitUsage || !strings.Contains(c.err, want) || strings.Count(c.err, "\n") != 1 || c.out != "" {
			t.Errorf("millrace %s: exit code %d, want one line with %q, got\n%s%s", line, c.code, want, c.err, c.out)
		}
	}
}

func TestFailuresAreToldInOneLineWithTheCure(t *testing.T) {
	t.Parallel()

	for line, want := range map[string]string{
		"test":                    "there is no file job_test.yaml",
		"lint nowhere.yaml":       "there is no file nowhere.yaml; name one, or let `millrace init` write one",
		"topics":                  "there is no broker in ",
		"status":                  "nothing runs on the broker in ",
		"why":                     "nothing runs on the broker in ",
		"plugins fle":             `there is no plugin "fle"; did you mean "file"?`,
		"topics create a/b":       "bad name",
		"consume nosuch":          `no topic "nosuch"`,
		"produce in nosuch.jsonl": "no such file",
		"offsets reset g in last": `no group "g"`,
	} {
		w := setup(t)

		if strings.Contains(line, "nosuch") || strings.HasPrefix(line, "offsets") {
			w.ok("", "topics", "create", "in")
		}

		c := w.do("", strings.Fields(line)...)
		if c.code != cli.ExitFailed || !strings.Contains(c.err, want) || c.out != "" {
			t.Errorf("millrace %s: exit code %d, want %q, got\n%s%s", line, c.code, want, c.err, c.out)
		}
	}
}

func TestLintTellsTheMistakesOfAllFiles(t *testing.T) {
	t.Parallel()

	w := setup(t)
	good := w.write("good.yaml", upperJob)
	bad := w.write("bad.yaml", strings.ReplaceAll(upperJob, "order: key", "ordre: key"))
	worse := w.write("worse.yaml", "name: x\n")

	if got := w.ok("", "lint", good); got != good+": 1 job, no mistakes\n" {
		t.Errorf("it says %q", got)
	}

	c := w.do("", "lint", good, bad, worse)
	if c.code != cli.ExitMistakes || !strings.Contains(c.err, bad+`:7:5`) || !strings.Contains(c.err, worse+`:1:1`) ||
		!strings.Contains(c.err, `unknown key "ordre" in channel "work"; did you mean "order"?`) {
		t.Errorf("exit code %d\n%s", c.code, c.err)
	}

	c = w.do(upperJob+"x: 1\n", "lint", "--json", "-")

	var mistakes []jobfile.Mistake
	if err := json.Unmarshal([]byte(c.out), &mistakes); err != nil {
		t.Fatal(err)
	}

	if c.code != cli.ExitMistakes || len(mistakes) != 1 || mistakes[0].Line != 10 || mistakes[0].File != "-" || c.err != "" {
		t.Errorf("exit code %d, %+v\n%s", c.code, mistakes, c.err)
	}

	if got := w.ok("", "lint", "--json", good); got != "[]\n" {
		t.Errorf("without mistakes it writes %q", got)
	}
}

func TestRunRefusesAFileWithMistakes(t *testing.T) {
	t.Parallel()

	w := setup(t)

	c := w.do("", "run", w.write("job.yaml", upperJob+"x: 1\n"))
	if c.code != cli.ExitMistakes || !strings.Contains(c.err, `unknown key "x" in the job`) {
		t.Errorf("exit code %d\n%s", c.code, c.err)
	}
}

func TestPluginsExplainThemselves(t *testing.T) {
	t.Parallel()

	w := setup(t)

	if got := w.ok("", "plugins"); !strings.Contains(got, "transform  upper") || !strings.Contains(got, "sink       file") {
		t.Errorf("the list is\n%s", got)
	}

	got := w.ok("", "plugins", "file")
	for _, want := range []string{"file (sink): Appends", "path   ", "batch | never", "Required", "Default batch.", "Example:"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()

	w := setup(t)

	for _, command := range []string{
		"run", "lint", "test", "init", "schema", "docs", "status", "why", "plugins", "produce", "consume", "topics", "topics create", "offsets", "offsets reset", "version",
	} {
		// By way of help, since the flag of the broker is put behind the first word.
		got := w.ok("", append([]string{"help"}, strings.Fields(command)...)...)
		if !strings.Contains(got, "Examples:\n  ") || !strings.Contains(got, "millrace "+command) {
			t.Errorf("millrace %s --help has no example:\n%s", command, got)
		}
	}

	if got := w.ok("", "version"); !strings.HasPrefix(got, "millrace ") || !strings.Contains(got, "go1.") {
		t.Errorf("the version is %q", got)
	}

	if got := w.ok("", "completion", "bash"); !strings.Contains(got, "millrace") {
		t.Errorf("the completion is\n%.200s", got)
	}
}

func TestConsumeReadsFromAPosition(t *testing.T) {
	t.Parallel()

	w := setup(t)
	w.ok("", "topics", "create", "in", "--queues", "1")
	w.ok("a\nb\nc\n", "produce", "in")

	for from, want := range map[string]string{
		"first": "a\nb\nc\n", "last": "", "1": "b\nc\n", "99": "", "1h": "a\nb\nc\n", "2001-01-01T00:00:00Z": "a\nb\nc\n",
		"2101-01-01T00:00:00Z": "",
	} {
		if got := w.ok("", "consume", "in", "--from", from); got != want {
			t.Errorf("from %s it writes %q, want %q", from, got, want)
		}
	}
}

func TestMessagesGoRoundThroughConsumeAndProduce(t *testing.T) {
	t.Parallel()

	w := setup(t)
	w.ok("", "topics", "create", "in", "--queues", "1")
	w.ok("", "topics", "create", "copy", "--queues", "1")
	w.ok(`{"a": [1, 2]}`+"\nplain text\n", "produce", "in", "-k", "k", "-t", "t", "-p", "p=1,q=2")

	messages := w.ok("", "consume", "in", "--json")
	w.ok(messages, "produce", "copy", "--json")

	if got := strings.ReplaceAll(w.ok("", "consume", "copy", "--json"), "copy/", "in/"); got != messages {
		t.Errorf("the copy is\n%swant\n%s", got, messages)
	}

	c := w.do(`{"body": "x"}`+"\n{\"bdy\": 1}\n", "produce", "copy", "--json")
	if c.code != cli.ExitFailed || !strings.Contains(c.err, `the input:2: the line is no message: unknown field "bdy"`) ||
		!strings.Contains(c.err, "published 1 message to copy") {
		t.Errorf("exit code %d\n%s", c.code, c.err)
	}
}

func TestOffsetsOfAGroupThatNobodyWorksForCanBeReset(t *testing.T) {
	t.Parallel()

	w := setup(t)
	file := w.write("job.yaml", upperJob)

	w.ok("", "topics", "create", "in", "--queues", "1")
	w.ok("a\nb\n", "produce", "in")
	w.ok("", "run", "-q", "--until-end", file)

	if got := w.ok("", "offsets", "reset", "upper", "in/0", "1"); got != "in/0  2 → 1\n" {
		t.Errorf("it says %q", got)
	}

	w.ok("", "run", "-q", "--until-end", file)

	if got := w.ok("", "consume", "out"); strings.Count(got, "B") != 2 || strings.Count(got, "A") != 1 {
		t.Errorf("the output is %q", got)
	}

	if c := w.do("", "offsets", "reset", "upper", "in/7", "1"); c.code != cli.ExitFailed ||
		!strings.Contains(c.err, `no queue 7 in topic "in"; it has the queues 0 to 0`) {
		t.Errorf("exit code %d\n%s", c.code, c.err)
	}
}
