package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/cli"
)

func TestProduceMakesATopicOnlyWhenItIsTold(t *testing.T) {
	t.Parallel()

	w := setup(t)

	c := w.do("a\n", "produce", "events")
	if c.code != cli.ExitFailed || !strings.Contains(c.err, "there is no broker in") {
		t.Errorf("without a broker: exit code %d\n%s", c.code, c.err)
	}

	for _, made := range []bool{true, false} { // the broker with the first, and nothing twice
		c = w.do("x\ny\n", "produce", "events", "--create")
		if c.code != cli.ExitOK || strings.Contains(c.err, "made topic events with 4 queues") != made {
			t.Errorf("exit code %d\n%s", c.code, c.err)
		}
	}

	w.ok("", "topics", "create", "other", "--queues", "2")

	if c := w.do("a\n", "produce", "other", "--create"); c.code != cli.ExitOK || c.err != "published 1 message to other\n" {
		t.Errorf("a topic with other queues: exit code %d\n%s", c.code, c.err)
	}

	for line, want := range map[string]string{
		"produce evnts": "millrace: there is no topic \"evnts\"; did you mean \"events\"? (--create makes it)\n",
		"consume evnts": "millrace: there is no topic \"evnts\"; did you mean \"events\"?\n",
		"consume zzz":   "millrace: there is no topic \"zzz\"; there are: events, other\n",
	} {
		c := w.do("a\n", strings.Fields(line)...)
		if c.code != cli.ExitFailed || c.err != want || c.out != "" {
			t.Errorf("%s: exit code %d, want %s, got\n%s", line, c.code, want, c.err)
		}
	}

	if got := w.ok("", "consume", "events"); strings.Count(got, "x\n") != 2 {
		t.Errorf("the topic has %q", got)
	}

	if _, err := os.Stat(w.path("evnts")); err == nil {
		t.Error("a directory was made")
	}
}

func TestTopicsAndOffsetsAreWrittenForScripts(t *testing.T) {
	t.Parallel()

	w := setup(t)
	w.ok("", "topics", "create", "in", "--queues", "1")
	w.ok("a\nb\n", "produce", "in")
	w.ok("", "run", "-q", "--until-end", w.write("job.yaml", upperJob))
	w.ok("c\n", "produce", "in")

	var topics []struct {
		Topic  string `json:"topic"`
		Queues []struct {
			Queue string `json:"queue"`
			First int64  `json:"first"`
			End   int64  `json:"end"`
			Bytes int64  `json:"bytes"`
		} `json:"queues"`
	}

	text := w.ok("", "topics", "--json")
	if err := json.Unmarshal([]byte(text), &topics); err != nil || strings.Contains(text, "%RETRY%") {
		t.Fatalf("%v\n%s", err, text)
	}

	if in := topics[0]; in.Topic != "in" || len(in.Queues) != 1 || in.Queues[0].Queue != "in/0" || in.Queues[0].End != 3 || in.Queues[0].Bytes == 0 {
		t.Errorf("the topics are\n%s", text)
	}

	if !strings.Contains(w.ok("", "topics", "--json", "--all"), "%RETRY%upper") {
		t.Error("--all does not list the topic of retries")
	}

	var groups []struct {
		Group   string   `json:"group"`
		Members []string `json:"members"`
		Queues  []struct {
			Queue  string `json:"queue"`
			Offset int64  `json:"offset"`
			Lag    int64  `json:"lag"`
		} `json:"queues"`
	}

	text = w.ok("", "offsets", "upper", "--json")
	if err := json.Unmarshal([]byte(text), &groups); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}

	last := groups[0].Queues[len(groups[0].Queues)-1]
	if groups[0].Group != "upper" || groups[0].Members == nil || last.Queue != "in/0" || last.Offset != 2 || last.Lag != 1 {
		t.Errorf("the offsets are\n%s", text)
	}

	if c := w.do("", "offsets", "uper"); c.code != cli.ExitFailed || !strings.Contains(c.err, `there is no group "uper"; did you mean "upper"?`) {
		t.Errorf("exit code %d\n%s", c.code, c.err)
	}
}
