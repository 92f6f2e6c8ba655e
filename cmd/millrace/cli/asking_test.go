package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/cmd/millrace/cli"
)

// endpoint returns where a run serves its admin endpoint.
func (j *job) endpoint() string {
	j.t.Helper()
	j.err.await(j.t, "runs")

	_, address, _ := strings.Cut(j.err.String(), "admin endpoint at http://")
	address, _, _ = strings.Cut(address, "\n")

	return address
}

// held is a world with a run that holds the one message of in/0, and the address of its admin endpoint.
func held(t *testing.T) (*world, *job, string) {
	t.Helper()

	w := setup(t)
	w.ok("", "topics", "create", "in", "--queues", "1")
	w.ok("x\n", "produce", "in", "--key", "k7")

	run := w.start("run", "--admin", "127.0.0.1:0", w.write("job.yaml", stalledJob))
	address := run.endpoint()

	t.Cleanup(func() {
		run.interrupt()
		run.interrupt()
		<-run.ended // the test's context has ended already
	})

	for status := ""; !strings.Contains(status, `"inFlight":1`); {
		status = strings.NewReplacer(" ", "", "\n", "").Replace(w.ok("", "status", "--json"))
	}

	return w, run, address
}

func TestStatusAndWhyWriteWhatTheEndpointAnswers(t *testing.T) {
	t.Parallel()

	w, _, address := held(t)

	for _, where := range [][]string{nil, {"--admin", address}, {"--admin", "http://" + address + "/"}} {
		var status admin.Status
		if err := json.Unmarshal([]byte(w.elsewhere(where, "status", "--json")), &status); err != nil {
			t.Fatal(err)
		}

		if len(status.Jobs) != 1 || status.Jobs[0].Queues[1].InFlight != 1 || len(status.Jobs[0].Channels[0].Lanes) != 1 {
			t.Errorf("%q: the status is %+v", where, status.Jobs)
		}

		var answers admin.Answers
		if err := json.Unmarshal([]byte(w.elsewhere(where, "why", "--json", "in")), &answers); err != nil {
			t.Fatal(err)
		}

		q := answers.Jobs[0].Queues[0]
		if len(answers.Jobs[0].Queues) != 1 || q.Blocking == nil || q.Blocking.Stage != "slow" || len(q.Blocking.Stack) == 0 {
			t.Errorf("%q: why says %+v", where, answers.Jobs)
		}

		table := w.elsewhere(where, "status", "stalled")
		for _, want := range []string{
			"  queue ", "committed", "  in/0 ", "  channel", "  work ", "  lane ", "  work-0 ", "in slow for ",
		} {
			if !strings.Contains(table, want) {
				t.Errorf("%q: the status has no %q:\n%s", where, want, table)
			}
		}
	}
}

// elsewhere runs a command on the world's broker, or where flags say.
func (w *world) elsewhere(flags []string, args ...string) string {
	w.t.Helper()

	if flags == nil {
		return w.ok("", args...)
	}

	var out, errs strings.Builder

	c := command(strings.NewReader(""), &out, &errs, nil)
	if code := c.Run(w.t.Context(), append(args, flags...)...); code != cli.ExitOK {
		w.t.Fatalf("millrace %s: exit code %d\n%s", args, code, errs.String())
	}

	return out.String()
}

func TestWatchingShowsTheStateAnewUntilAnInterrupt(t *testing.T) {
	t.Parallel()

	w, run, _ := held(t)

	for line, mark := range map[string]string{
		"status --watch": "  work-0 ", "status --watch --json": `{"jobs":[{`, "why in/0 --watch": "in/0  stands at 0",
		"why --watch --json": `"cause":`,
	} {
		watch := w.start(append(strings.Fields(line), "--every", "5ms")...)

		for watch.out.await(t, mark); strings.Count(watch.out.String(), mark) < 3; {
			watch.out.next(t)
		}

		watch.interrupt()

		if code := watch.end(); code != cli.ExitOK || watch.err.String() != "" {
			t.Errorf("%s: exit code %d\n%s", line, code, watch.err)
		}

		if strings.Contains(watch.out.String(), "\x1b") {
			t.Errorf("%s: without a terminal it draws: %q", line, watch.out)
		}
	}

	// A job that ends is no end for who watches.
	watch := w.start("status", "--watch", "--every", "5ms")
	watch.out.await(t, "work-0")
	run.interrupt()
	run.interrupt() // a third and a fourth one, at the end, come too late
	watch.out.await(t, "do not answer")
	watch.interrupt()

	if code := watch.end(); code != cli.ExitOK {
		t.Errorf("exit code %d\n%s", code, watch.err)
	}
}

func TestQueuesArePausedResumedAndSoughtByCommands(t *testing.T) {
	t.Parallel()

	w := setup(t)
	w.ok("", "topics", "create", "in", "--queues", "2")

	run := w.start("run", "--admin", "127.0.0.1:0", w.write("job.yaml", upperJob))
	there := []string{"--admin", run.endpoint()}

	for _, where := range [][]string{nil, there} {
		if got := w.elsewhere(where, "pause", "in", "--why", "until Monday"); got != "in/0  upper is paused\nin/1  upper is paused\n" {
			t.Errorf("pause says %q", got)
		}

		why := w.elsewhere(where, "why")
		if !strings.Contains(why, "in/1  is paused: by ") || !strings.Contains(why, ": until Monday") ||
			!strings.Contains(why, "nothing, until it is resumed") {
			t.Errorf("why says\n%s", why)
		}

		if got := w.elsewhere(where, "resume", "in/0", "in/1", "--job", "upper"); !strings.Contains(got, "in/1  upper goes on\n") {
			t.Errorf("resume says %q", got)
		}

		if got := w.elsewhere(where, "seek", "in/0", "0"); got != "in/0  upper goes on at 0\n" {
			t.Errorf("seek says %q", got)
		}
	}

	if got := w.elsewhere(there, "drain", "upper", "--budget", "20s"); !strings.HasPrefix(got, "upper  stopped clean, after ") {
		t.Errorf("drain says %q", got)
	}

	if code := run.end(); code != cli.ExitOK {
		t.Errorf("run: exit code %d\n%s", code, run.err)
	}
}

func TestADrainIsWaitedFor(t *testing.T) {
	t.Parallel()

	w, run, address := held(t)

	// The message stays where it is for longer than anybody waits.
	for _, where := range [][]string{{"--broker", w.broker}, {"--admin", address}} {
		var out, errs strings.Builder

		c := command(strings.NewReader(""), &out, &errs, nil)
		code := c.Run(t.Context(), append([]string{"drain", "stalled", "--budget", "1h", "--timeout", "50ms"}, where...)...)

		if code != cli.ExitFailed || !strings.Contains(errs.String(), "has not stopped within 50ms and goes on to drain") {
			t.Errorf("%q: exit code %d, %s", where, code, errs.String())
		}
	}

	if got := w.ok("", "drain", "stalled", "--no-wait"); got != "stalled  drains\n" {
		t.Errorf("without waiting it says %q", got)
	}

	c := w.do("", "drain", "stalled", "--budget", "10ms")
	if c.code != cli.ExitUnfinished || !strings.HasPrefix(c.out, "stalled  stopped with 1 message left unfinished, to come again, after ") {
		t.Errorf("exit code %d, %s%s", c.code, c.out, c.err)
	}

	if code := run.end(); code != cli.ExitUnfinished {
		t.Errorf("run: exit code %d", code)
	}

	run.ended <- cli.ExitUnfinished // for who ends the run
}

func TestWhatIsWrongWithAnEndpointIsTold(t *testing.T) {
	t.Parallel()

	w := setup(t)
	token := w.write("token", "0123456789abcdef\n")

	serve := func(h http.HandlerFunc) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)

		return s.URL
	}

	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()

	locked := serve(admin.NewHandler(admin.Options{Token: "0123456789abcdef", Jobs: new(admin.Jobs)}).ServeHTTP)
	page := serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	other := serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"status":"up"}`)) })
	leads := serve(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, locked, http.StatusFound) })

	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"status --admin " + gone.URL, "do not answer; is `millrace run`", cli.ExitFailed},
		{"why --admin " + locked, "needs its token", cli.ExitFailed},
		{"why --admin " + locked + " --admin-token-file " + w.path("nothing"), "--admin-token-file", cli.ExitFailed},
		{"why --admin " + locked + " --admin-token-file " + token, "no job runs at " + locked, cli.ExitFailed},
		{"status --admin " + page, "no admin endpoint of millrace", cli.ExitFailed},
		{"status --admin " + other, "no admin endpoint of millrace", cli.ExitFailed},
		{"drain x --admin " + other, "no admin endpoint of millrace", cli.ExitFailed},
		{"status --admin " + leads, "it answers 302 Found", cli.ExitFailed},
		{"status --admin " + gone.URL + "/404?x=1", "write it like 127.0.0.1:7411", cli.ExitUsage},
		{"status --admin ftp://x", "write it like 127.0.0.1:7411", cli.ExitUsage},
		{"status --admin http://me:secret@x", "which others can see", cli.ExitUsage},
		{"status --admin x:1 --broker y", "name two places", cli.ExitUsage},
		{"status --admin-token-file y", "of no use without --admin", cli.ExitUsage},
		{"dlq ls --admin " + gone.URL, "do not answer; is `millrace run`", cli.ExitFailed},
		{"dlq ls --admin " + locked, "needs its token", cli.ExitFailed},
		{"dlq ls --admin " + locked + " --admin-token-file " + token, "no dead letters are served here", cli.ExitFailed},
		{"dlq ls --admin " + other, "no admin endpoint of millrace", cli.ExitFailed},
		{"dlq drop x --yes --admin " + other, "no admin endpoint of millrace", cli.ExitFailed},
		{"dlq replay x --admin " + page, "no admin endpoint of millrace", cli.ExitFailed},
		{"dlq ls --admin x:1 --broker y", "name two places", cli.ExitUsage},
		{"dlq ls --admin-token-file y", "of no use without --admin", cli.ExitUsage},
		{"dlq ls --where ( --admin " + locked, "--where", cli.ExitUsage},
		{"status --every 0s", "--every is 0s; use a time above 0", cli.ExitUsage},
		{"seek in 3", `"in" is no queue; write it like quakes/2`, cli.ExitUsage},
		{"seek in/0 soon", `"soon" is no offset; write a number`, cli.ExitUsage},
		{"drain x --timeout -1s", "--timeout is -1s; use a time above 0", cli.ExitUsage},
		{"drain x --timeout 1s --no-wait", "no-wait timeout", cli.ExitFailed},
		{"drain x --budget -1s", "--budget is -1s; use a time above 0", cli.ExitUsage},
	} {
		var out, errs strings.Builder

		code := command(strings.NewReader(""), &out, &errs, nil).Run(t.Context(), strings.Fields(c.line)...)
		if code != c.code || !strings.Contains(errs.String(), c.want) || strings.Contains(errs.String(), "secret") || out.Len() > 0 {
			t.Errorf("millrace %s: exit code %d, want %q, got\n%s%s", c.line, code, c.want, errs.String(), out.String())
		}
	}
}
