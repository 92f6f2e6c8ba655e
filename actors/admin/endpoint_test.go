package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/pipeline"
)

// document is as much of OpenAPI as the tests read.
type document struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]struct {
				Schema struct {
					Ref string `json:"$ref"`
				} `json:"schema"`
			} `json:"content"`
		} `json:"responses"`
	} `json:"paths"`
}

// conforms holds an answer against what the document says of it.
func (w *world) conforms(method, path string, answer *httptest.ResponseRecorder) {
	w.t.Helper()

	text := w.ask(admin.Options{}, http.MethodGet, "/api/v1/openapi.json", "", nil).Body.Bytes()

	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		w.t.Fatal(err)
	}

	operation, ok := d.Paths[path][strings.ToLower(method)]
	if !ok {
		w.t.Fatalf("the document does not have %s %s", method, path)
	}

	response := operation.Responses["200"]
	if answer.Code != http.StatusOK {
		response = operation.Responses["default"]
	}

	ref := response.Content["application/json"].Schema.Ref

	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}

	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", whole); err != nil {
		w.t.Fatal(err)
	}

	schema, err := compiler.Compile("openapi.json" + ref)
	if err != nil {
		w.t.Fatal(err)
	}

	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer.Body.Bytes()))
	if err != nil {
		w.t.Fatalf("%s %s: %v\n%s", method, path, err, answer.Body)
	}

	if err := schema.Validate(value); err != nil {
		w.t.Errorf("%s %s: %v\n%s", method, path, err, answer.Body)
	}
}

func TestEveryAnswerIsAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, 1)
		open := make(chan struct{})

		defer close(open)

		w.publish(20)
		w.run(w, job(pipeline.Channel{Name: "work", Stages: []pipeline.Stage{gate(named("m0"), open, true)}}), actors.Options{})
		pass(20 * time.Second)

		get := func(path, query string) string {
			t.Helper()

			answer := w.ask(admin.Options{}, http.MethodGet, path+query, "", nil)
			w.conforms(http.MethodGet, path, answer)

			return answer.Body.String()
		}

		get("/api/v1/status", "")
		get("/api/v1/status", "?job=job")

		if text := get("/api/v1/status", "?job=jop"); !strings.Contains(text, `did you mean \"job\"?`) {
			t.Error(text)
		}

		if text := get("/api/v1/topology", "?job=job"); !strings.Contains(text, `"to":"work"`) || !strings.Contains(text, `"stages":["gate"]`) {
			t.Error(text)
		}

		get("/api/v1/why", "")

		if text := get("/api/v1/why", "?queue=in/0"); !strings.Contains(text, `"cause":"runs"`) || strings.Contains(text, "%RETRY%") {
			t.Error(text)
		}

		if text := get("/api/v1/why", "?queue=im"); !strings.Contains(text, `no job here reads \"im\"`) {
			t.Error(text)
		}

		for _, c := range []struct {
			what, body, want string
		}{
			{"pause", `{"queue": "in/0", "why": "by Ada"}`, `{"done":true}`},
			{"pause", `{"queue": "in/7"}`, "this job owns"},
			{"pause", `{}`, "names no queue"},
			{"pause", `{"queue": "in"}`, "is no queue"},
			{"pause", `{"quue": "in/0"}`, "unknown field"},
			{"resume", `{"queue": "in/0"}`, `{"done":true}`},
			{"seek", `{"queue": "in/0"}`, "needs an offset"},
			{"seek", `{"queue": "in/0", "offset": 2}`, `{"done":true}`},
			{"drain", `{"budget": "soon"}`, "is no time above 0"},
			{"drain", `{"wait": "1m"}`, "is above 20s; ask again"},
			{"drain", `{"budget": "1s"}`, `{"done":true}`},
			{"drain", `{"wait": "20s"}`, `{"done":true,"stopped":true,"clean":true`},
			{"drain", `{"wait": "20s"}`, `"stopped":true`},
		} {
			answer := w.ask(admin.Options{}, http.MethodPost, "/api/v1/jobs/job/"+c.what, c.body, nil)
			w.conforms(http.MethodPost, "/api/v1/jobs/{job}/"+c.what, answer)

			if !strings.Contains(answer.Body.String(), c.want) {
				t.Errorf("%s %s: %d %s", c.what, c.body, answer.Code, answer.Body)
			}
		}

		pass(10 * time.Second)

		if text := get("/api/v1/why", ""); !strings.Contains(text, string(admin.JobStopped)) {
			t.Errorf("after the drain: %s", text)
		}

		get("/api/v1/status", "")
	})
}

func TestChangesTakeEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, 1)
		r := w.run(w, job(pipeline.Channel{Name: "work"}), actors.Options{})
		pass(time.Second)

		do := func(what, body string) {
			t.Helper()

			if a := w.ask(admin.Options{}, http.MethodPost, "/api/v1/jobs/job/"+what, body, nil); a.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", what, a.Code, a.Body)
			}
		}

		do("pause", `{"queue": "in/0"}`)
		pass(time.Minute)
		w.publish(3)
		pass(time.Minute)

		paused := func() string {
			a := w.why()
			i := slices.IndexFunc(a.Jobs[0].Queues, func(q admin.Why) bool { return q.Queue == queue(0) })

			return a.Jobs[0].Queues[i].Paused
		}

		if why := paused(); why != "by a request to the admin endpoint" {
			t.Errorf("paused %q", why)
		}

		do("resume", `{"queue": "in/0"}`)
		pass(time.Minute)

		if at := w.Standings("job", "in")[0].Checkpoint.Next; at != 3 {
			t.Errorf("after the pause it is at %d", at)
		}

		do("seek", `{"queue": "in/0", "offset": 1}`)
		pass(time.Minute)

		if s, err := r.Snapshot(t.Context()); err != nil || s.Counts.Completed != 5 {
			t.Errorf("after the seek %+v, %v", s, err)
		}

		do("drain", `{}`)
		<-r.Stopped()
	})
}

func TestSecretsAreTakenOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, 1)
		j := job(pipeline.Channel{Name: "work", Stages: []pipeline.Stage{
			failing(named("m0"), pipeline.RetryAfter(errBroken, time.Hour)),
		}, Order: pipeline.OrderByKey})

		w.publish(1)
		w.run(w, j, actors.Options{})
		pass(20 * time.Second)

		a := w.ask(admin.Options{Redact: func(s string) string { return strings.ReplaceAll(s, "broken", "***") }},
			http.MethodGet, "/api/v1/why", "", nil).Body.String()
		if !strings.Contains(a, `"lastError":"work/picky: ***`) {
			t.Error(a)
		}
	})
}

func TestProbesAndMetricsFollowTheJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, 1)
		open := make(chan struct{})

		defer close(open)

		get := func(path string, want int) string {
			t.Helper()

			a := w.ask(admin.Options{}, http.MethodGet, path, "", nil)
			if a.Code != want {
				t.Errorf("%s: %d, want %d: %s", path, a.Code, want, a.Body)
			}

			return a.Body.String()
		}

		get("/readyz", http.StatusServiceUnavailable)
		get("/healthz", http.StatusOK)

		w.publish(5)
		r := w.run(w, job(pipeline.Channel{
			Name: "work", Stages: []pipeline.Stage{counting("count", "seen", "\xff"), gate(named("m3"), open, true)},
		}), actors.Options{})
		pass(20 * time.Second)
		get("/readyz", http.StatusOK)
		get("/healthz", http.StatusOK)

		metrics := get("/metrics", http.StatusOK)
		for _, want := range []string{
			`millrace_messages_admitted_total{job="job"} 5`,
			`millrace_queue_committed_offset{job="job",queue="in/0"}`,
			`millrace_queue_end_offset{job="job",queue="in/0"} 5`,
			`millrace_queue_stands{cause="runs",job="job",queue="in/0"} 1`,
			`millrace_channel_lanes{channel="work",job="job"} 1`,
			`millrace_plugin_total{channel="work",count="seen",job="job",stage="count"} 4`,
		} {
			if !strings.Contains(metrics, want) {
				t.Errorf("no %s in\n%s", want, metrics)
			}
		}

		if status := get("/api/v1/status", http.StatusOK); !strings.Contains(status, `"plugins":[{"stage":"count","counts":{"seen":4,`) {
			t.Errorf("no counts of the plugin in\n%s", status)
		}

		r.Drain(-1)
		get("/readyz", http.StatusServiceUnavailable)
		get("/healthz", http.StatusOK)

		absent := job(pipeline.Channel{Name: "work"})
		absent.Source.Topics = []string{"absent"}
		<-w.run(w, absent, actors.Options{}).Stopped()
		get("/healthz", http.StatusServiceUnavailable)
	})
}

// A stack is of the very call, in the very lane, and only as long as that goes on.
func TestStacksAreOfTheRunningCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, 1)
		one, other := make(chan struct{}), make(chan struct{})
		c := pipeline.Channel{Name: "work", Lanes: 2, Stages: []pipeline.Stage{pipeline.Func("waits",
			func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				if m.ID == "m1" {
					waitForOther(other)

					return emit(m)
				}

				done := make(chan struct{})

				go func() { // it has the labels of the lane
					defer close(done)

					waitForOther(one)
				}()

				waitFor(done)

				return emit(m)
			})}}

		w.publish(4)
		r := w.run(w, job(c), actors.Options{})
		pass(10 * time.Second)

		s, err := r.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		s.AddStacks()

		i := slices.IndexFunc(s.Queues, func(q actors.QueueStatus) bool { return q.Queue == queue(0) })
		if stack := s.Queues[i].Blocking.Stack; len(stack) != 2 || !strings.HasPrefix(stack[0], "admin_test.waitFor (endpoint_test.go:") {
			t.Errorf("the stack is %q", stack)
		}

		lanes := s.Channels[0].Lanes
		if len(lanes) != 2 || len(lanes[0].Stack) == 0 || len(lanes[1].Stack) == 0 || lanes[0].Stack[0] == lanes[1].Stack[0] {
			t.Errorf("the lanes are %+v", lanes)
		}

		s, err = r.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		one <- struct{}{} // the lane is at the next message then
		pass(time.Second)
		s.AddStacks()

		if stack := s.Queues[i].Blocking.Stack; stack != nil {
			t.Errorf("of a call that has ended the stack is %q", stack)
		}

		close(one)
		close(other)
	})
}

//go:noinline
func waitForOther(open <-chan struct{}) { <-open }

//go:noinline
func waitFor(done <-chan struct{}) { <-done }
