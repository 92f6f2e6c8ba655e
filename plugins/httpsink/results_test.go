package httpsink_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins/httpsink"
)

// says starts a server that answers requests with these texts, the last one from then on.
func says(tb testing.TB, answers ...string) *server {
	tb.Helper()

	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)

		s.mu.Lock()
		defer s.mu.Unlock()

		_, _ = io.WriteString(w, answers[min(len(s.kept), len(answers)-1)])
		s.kept = append(s.kept, string(body))
	}))
	tb.Cleanup(s.Close)

	return s
}

// fates are what became of n messages: ok, again or never.
func fates(err error, n int) string {
	all := make([]string, n)
	failures, partial := errors.AsType[*pipeline.BatchError](err)

	for i := range all {
		failure := err
		if partial {
			failure = failures.Failed[i]
		}

		switch {
		case failure == nil:
			all[i] = "ok"
		case pipeline.IsRejected(failure):
			all[i] = "never"
		default:
			all[i] = "again"
		}
	}

	return strings.Join(all, ",")
}

func TestAnAnswerSaysWhatBecameOfEachMessage(t *testing.T) {
	t.Parallel()

	const bulk = "map(body.items, .index.status)"

	for _, c := range []struct{ results, answer, want string }{
		{bulk, `{"errors":false,"items":[{"index":{"status":201}},{"index":{"status":200}},{"index":{"status":201}}]}`, "ok,ok,ok"},
		{bulk, `{"errors":true,"items":[{"index":{"status":201}},{"index":{"status":429}},{"index":{"status":400}}]}`, "ok,again,never"},
		{"body", `[null,true,{"status":503,"reason":"later"}]`, "ok,ok,again"},
		{"body", `{"1":409}`, "ok,never,ok"},
		{"body", `{}`, "ok,ok,ok"},
		{"body", `null`, "ok,ok,ok"},
		{"body.errors ? body.of : nil", `{"errors":false}`, "ok,ok,ok"},
		{"fromPairs(map(body.failed, [string(.index), .retry ? 503 : 400]))", `{"failed":[{"index":2,"retry":true},{"index":0,"retry":false}]}`, "never,ok,again"},
		// What cannot be understood loses nothing.
		{"body", `[200,200]`, "again,again,again"},
		{"body", `[200,200,200,400]`, "again,again,again"},
		{"body", `[200,400,false]`, "again,again,again"},
		{"body", `[200,400,"no"]`, "again,again,again"},
		{"body", `[200,400,{"reason":"x"}]`, "again,again,again"},
		{"body", `[200,400,99]`, "again,again,again"},
		{"body", `{"3":400}`, "again,again,again"},
		{"body", `{"-1":400}`, "again,again,again"},
		{"body", `{"one":400}`, "again,again,again"},
		{"body", `200`, "again,again,again"},
		{"body", `<html>`, "again,again,again"},
		{"body", ``, "again,again,again"},
	} {
		for _, batch := range []string{"array", "lines"} {
			s := says(t, c.answer)
			sink := setup(t, s, map[string]any{"batch": batch, "results": c.results})

			err := sink.Write(t.Context(), pipelinetest.Messages("0", "1", "2"))
			if got := fates(err, 3); got != c.want {
				t.Errorf("%s of %s: %s, want %s; %v", c.results, c.answer, got, c.want, err)
			}

			counts := sink.Meter()
			if taken := int64(strings.Count(c.want, "ok")); counts["messages"] != taken || counts["requests"] != 1 {
				t.Errorf("%s of %s: counted %v", c.results, c.answer, counts)
			}

			if named := int64(strings.Count(c.want, "again") + strings.Count(c.want, "never")); c.want != "again,again,again" && counts["declined"] != named {
				t.Errorf("%s of %s: counted %v", c.results, c.answer, counts)
			}
		}
	}
}

func TestResultsAreThoseOfTheMessagesInTheRequest(t *testing.T) {
	t.Parallel()

	// Message 1 is in no request and 2 in another one, so places in a request are not those in the batch.
	s := says(t, `[200,{"status":400,"reason":"too \"hot\""}]`, `[422]`)
	sink := setup(t, s, map[string]any{"url": s.URL + "/{key}?token=hush", "batch": "array", "results": "body"})
	batch := pipelinetest.Messages("0", "no JSON", "2", "3")

	for i, key := range []string{"a", "a", "b", "a"} {
		batch[i].Key = key
	}

	err := sink.Write(t.Context(), batch)
	if got := fates(err, 4); got != "ok,never,never,never" {
		t.Errorf("%s: %v", got, err)
	}

	failures, _ := errors.AsType[*pipeline.BatchError](err)
	want := fmt.Sprintf("http: POST %s/a: answered 400 Bad Request for this message: %q", s.URL, `too "hot"`)

	result, ok := errors.AsType[*httpsink.ResultError](failures.Failed[3])
	if got := failures.Failed[3].Error(); got != want || !ok || result.Status != 400 {
		t.Errorf("the error is %s, want %s", got, want)
	}

	if result, ok := errors.AsType[*httpsink.ResultError](failures.Failed[2]); !ok || result.Status != 422 {
		t.Errorf("the error is %v", failures.Failed[2])
	}
}

func TestTheOptionsJudgeTheStatusOfAResult(t *testing.T) {
	t.Parallel()

	s := says(t, `[409,404,500]`)
	sink := setup(t, s, map[string]any{
		"batch": "lines", "results": "body", "accept": []any{"2xx", 409}, "retry": []any{404},
	})

	if got := fates(sink.Write(t.Context(), pipelinetest.Messages("0", "1", "2")), 3); got != "ok,again,never" {
		t.Error(got)
	}
}

func TestAServerThatTakesAPartAndHasTooMuchToDoIsLeftAlone(t *testing.T) {
	t.Parallel()

	s := says(t, `429`, `200`)
	sink := setup(t, s, map[string]any{"results": "body"})

	if got := fates(sink.Write(t.Context(), pipelinetest.Messages("0", "1")), 2); got != "again,again" || len(s.bodies()) != 1 {
		t.Errorf("%s after %q", got, s.bodies())
	}

	if got := fates(sink.Write(t.Context(), pipelinetest.Messages("0", "1")), 2); got != "ok,ok" {
		t.Errorf("%s after %q", got, s.bodies())
	}
}

func TestAnAnswerThatIsTooLongForItsResultsIsAFailure(t *testing.T) {
	t.Parallel()

	s := says(t, "["+strings.Repeat(" ", 2000)+"200]")
	sink := setup(t, s, map[string]any{"batch": "array", "results": "body", "max_answer": 1000})

	err := sink.Write(t.Context(), pipelinetest.Messages("0"))
	if err == nil || !strings.Contains(err.Error(), "max_answer") {
		t.Errorf("the error is %v", err)
	}
}

func TestARequestThatFailsFailsAllOfItsMessages(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		status  int
		options map[string]any
		want    string
	}{
		{500, nil, "again,again,again"},
		{429, nil, "again,again,again"},
		{401, nil, "again,again,again"},
		{403, nil, "again,again,again"},
		{404, nil, "never,never,never"},
		{422, map[string]any{"retry": []any{422}}, "again,again,again"}, // the option says that no message is at fault
	} {
		for _, batch := range []string{"array", "lines"} {
			s := serve(t, func(string) int { return c.status })

			options := map[string]any{"batch": batch}
			maps.Copy(options, c.options)

			sink := setup(t, s, options)
			err := sink.Write(t.Context(), pipelinetest.Messages("0", "1", "2"))

			if got := fates(err, 3); got != c.want || sink.Meter()["requests"] != 1 {
				t.Errorf("%d: %s, counted %v; %v", c.status, got, sink.Meter(), err)
			}
		}
	}
}

func TestTheServerSaysWhenABatchIsSentAgain(t *testing.T) {
	t.Parallel()

	s := &server{Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}))}
	t.Cleanup(s.Close)

	sink := setup(t, s, nil)
	failures, _ := errors.AsType[*pipeline.BatchError](sink.Write(t.Context(), pipelinetest.Messages("0", "1")))

	for i := range 2 { // the second is not sent any more, and has to wait as long
		if delay, ok := pipeline.RetryDelay(failures.Failed[i]); !ok || delay != 7*time.Second {
			t.Errorf("message %d is sent again after %v: %v", i, delay, failures.Failed[i])
		}
	}
}

func TestNothingIsSentWhenTheContextHasEnded(t *testing.T) {
	t.Parallel()

	s := serve(t, nil)
	sink := setup(t, s, nil)
	ctx, cancel := context.WithCancel(t.Context())

	cancel()

	err := sink.Write(ctx, pipelinetest.Messages("0", "1"))
	if got := fates(err, 2); got != "again,again" || sink.Meter()["requests"] != 0 {
		t.Errorf("%s: %v, counted %v", got, err, sink.Meter())
	}
}
