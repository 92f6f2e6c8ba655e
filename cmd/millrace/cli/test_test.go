package cli_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/cmd/millrace/cli"
)

const testedJob = `
name: tested
broker: { embedded: DIR/data }
source: { topics: [in, other], start: last }
retry: { attempts: 3, delay: 1h }
channels:
  work:
    order: key
    lanes: 4
    stages: [ upper ]
    routes:
      - { tag: major, to: alerts }
      - { tag: bad, to: broken }
      - archive
  alerts:
    sink: { topic: { name: alerts } }
  archive:
    batch: { messages: 1000, every: 1h }
    sink: { file: { path: DIR/never-made/archive } }
  broken:
    stages: [ { fail: "${WORD}" } ]
    sink: discard
`

const goodTests = `
job: job.yaml
variables: { WORD: a sesame }
tests:
  - name: great ones are told
    in:
      - { key: k1, tag: major, props: { p: x }, body: { mag: 6.5 } }
      - { key: k2, topic: other, body: plain }
    out:
      alerts: [ { key: k1, tag: major, props: { p: x }, body: { MAG: 6.50 } } ]
      archive: [ { body: PLAIN }, { body: { "MAG": 6.5 } } ]
  - name: bad ones fail
    in: [ { key: k3, tag: bad, body: x } ]
    out: { archive: any }
    fail: { key: k3, stage: broken/fail, error: no entry }
`

func TestTestsOfJobsPassWithoutTouchingAnything(t *testing.T) {
	t.Parallel()

	w := setup(t)
	w.write("job.yaml", testedJob)

	got := w.ok("", "test", w.write("good_test.yaml", goodTests))
	if !strings.Contains(got, "ok    great ones are told  (") || !strings.Contains(got, "ok    bad ones fail  (") ||
		!strings.HasSuffix(got, "2 tests, 0 failed\n") {
		t.Errorf("it says\n%s", got)
	}
}

func TestTestsOfJobsThatFailSayHowTheyDiffer(t *testing.T) {
	t.Parallel()

	w := setup(t)
	w.write("job.yaml", testedJob)

	file := w.write("bad_test.yaml", `
job: job.yaml
variables: { WORD: a secret }
tests:
  - name: wrong all over
    in:
      - { key: k1, tag: major, body: { mag: 6.5, list: [1, 2] } }
      - { key: k2, tag: bad, body: x }
    out:
      alerts: [ { key: k1, tag: minor, props: { p: x }, body: { MAG: 7, WHERE: here, LIST: [1, 3] } } ]
      archive:
        - { key: k9, body: nothing }
        - { key: k1, body: { MAG: 6.5, LIST: [1, 2] } }
        - { body: too much }
      elsewhere: []
`)

	c := w.do("", "test", file)
	if c.code != cli.ExitTests || c.err != "" {
		t.Errorf("exit code %d\n%s", c.code, c.err)
	}

	got := strings.ReplaceAll(c.out, file, "FILE")

	const want = `FAIL  wrong all over
      FILE:5:5  no channel with a sink is called "elsewhere"; there are: alerts, archive, broken
      FILE:10:17  alerts: a message differs:
        tag: got "major", want "minor"
        props.p: got "", want "x"
        body.LIST[1]: got 2, want 3
        body.MAG: got 6.5, want 7
        body.WHERE: missing, want "here"
      FILE:12:11  archive: a message differs:
        key: got "k2", want "k9"
        body: got "X", want "nothing"
      FILE:14:11  archive: this message did not come:
        body "too much"
      FILE:5:5  a message failed: key "k2" in broken/fail, with "no entry with a secret"
        key "k2"  tag "bad"  body "x"
1 test, 1 failed
`
	if got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
}

func TestWrongFilesOfTestsAreTold(t *testing.T) {
	t.Parallel()

	w := setup(t)
	w.write("job.yaml", testedJob)
	w.write("two.yaml", upperJob+"---"+strings.Replace(strings.Replace(upperJob, "broker: { embedded: DIR/data }\n", "", 1),
		"name: upper", "name: lower", 1))

	for text, want := range map[string]struct {
		code int
		text string
	}{
		"job: job.yaml\ntsts: []\n":                      {cli.ExitMistakes, `unknown key "tsts" in the file; did you mean "tests"?`},
		"job: jop.yaml\ntests: [ { in: [] } ]\n":         {cli.ExitFailed, "there is no file"},
		"job: job.yaml\ntests: [ { in: [] } ]\n":         {cli.ExitMistakes, "the environment variable WORD is not set"},
		"job: two.yaml\ntests: [ { in: [] } ]\n":         {cli.ExitFailed, "has several jobs; add name: with one of them"},
		"job: two.yaml\nname: uper\ntests: [ {in: []} ]": {cli.ExitFailed, `has no job "uper"; did you mean "upper"?`},
	} {
		c := w.do("", "test", w.write("x_test.yaml", text))
		if c.code != want.code || !strings.Contains(c.err, want.text) {
			t.Errorf("%s: exit code %d, want %d with %q:\n%s", text, c.code, want.code, want.text, c.err)
		}
	}

	c := w.do("", "test", w.write("x_test.yaml", "job: two.yaml\nname: upper\ntests: [ { in: [ { topic: im, body: x } ] } ]\n"))
	if c.code != cli.ExitTests || !strings.Contains(c.out, `the job does not read topic "im"; did you mean "in"?`) {
		t.Errorf("exit code %d\n%s%s", c.code, c.out, c.err)
	}
}

func TestATestThatTakesTooLongFails(t *testing.T) {
	t.Parallel()

	w := setup(t)
	w.write("job.yaml", stalledJob)

	c := w.do("", "test", "--timeout", "100ms", w.write("x_test.yaml", "job: job.yaml\ntests: [ { in: [ { body: x } ] } ]\n"))
	if c.code != cli.ExitTests || !strings.Contains(c.out, "it took more than 100ms") {
		t.Errorf("exit code %d\n%s%s", c.code, c.out, c.err)
	}
}

func TestTestsOfJobsDoNotWaitForAThrottle(t *testing.T) {
	t.Parallel()

	w := setup(t)
	w.write("job.yaml", `
name: slow
broker: { embedded: DIR/data }
source: { topic: in }
channels:
  work:
    lanes: 2
    order: key
    stages:
      - throttle: { messages: 0.016666, burst: 1ms } # one a minute
      - dedupe: { by: tag, for: 90s }
    sink: discard
`)

	// One minute apart, a tag that is forgotten after 90 s passes every second time.
	text, want := "", ""

	var textSb181 strings.Builder
	var wantSb181 strings.Builder
	for n := range 10 {
		message := fmt.Sprintf("      - { key: k, tag: t, body: { n: %d } }\n", n)

		textSb181.WriteString(message)
		if n%2 == 0 {
			wantSb181.WriteString("    " + message)
		}
	}
	text += textSb181.String()
	want += wantSb181.String()

	began := time.Now()

	w.ok("", "test", w.write("x_test.yaml", "job: job.yaml\ntests:\n  - in:\n"+text+"    out:\n      work:\n"+want))

	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("nine minutes took %s", took)
	}
}
