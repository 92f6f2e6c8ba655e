package httpsink_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/httpsink"
)

// server is an HTTP server that keeps the requests that it accepts.
type server struct {
	*httptest.Server

	// answer is what a body is answered with; nil accepts all.
	answer func(body string) int

	mu       sync.Mutex
	requests []*http.Request
	kept     []string
}

func serve(tb testing.TB, answer func(body string) int) *server {
	tb.Helper()

	s := &server{answer: answer}
	s.Server = httptest.NewServer(s)
	tb.Cleanup(s.Close)

	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.requests = append(s.requests, r)

	status := http.StatusOK
	if s.answer != nil {
		status = s.answer(string(body))
	}

	w.WriteHeader(status)

	if status < 300 {
		s.kept = append(s.kept, string(body))
	}
}

func (s *server) bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.kept)
}

func setup(tb testing.TB, s *server, options map[string]any) *httpsink.Sink {
	tb.Helper()

	all := map[string]any{"url": s.URL + "/in"}
	maps.Copy(all, options)

	var o httpsink.Options
	if err := plugins.Decode(all, &o); err != nil {
		tb.Fatal(err)
	}

	sink, err := httpsink.New(o)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() { _ = sink.Close() })

	return sink
}

func TestTheHTTPSinkIsASink(t *testing.T) {
	t.Parallel()

	poisoned := func(body string) int {
		if strings.Contains(body, "poison") {
			return http.StatusUnprocessableEntity
		}

		return http.StatusOK
	}
	poison := func(m *pipeline.Message) { m.Body = []byte(`"poison"`) }
	broken := func(m *pipeline.Message) { m.Body = append(m.Body, "\n,"...) }

	for name, c := range map[string]struct {
		batch  string
		poison func(m *pipeline.Message)
	}{
		"one by one":            {"none", poison},
		"an array":              {"array", poison},
		"an array, broken JSON": {"array", broken},
		"lines":                 {"lines", poison},
		"lines, broken lines":   {"lines", broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			pipelinetest.TestSink(t, pipelinetest.Harness{
				New: func(tb testing.TB) (pipeline.Sink, func() []string) {
					tb.Helper()

					s := serve(tb, poisoned)

					return setup(tb, s, map[string]any{"batch": c.batch}), func() []string {
						return messages(tb, c.batch, s.bodies())
					}
				},
				Poison: c.poison,
			})
		})
	}
}

// messages are the messages in requests.
func messages(tb testing.TB, batch string, requests []string) []string {
	tb.Helper()

	var all []string

	for _, body := range requests {
		switch batch {
		case "array":
			var elements []json.RawMessage
			if err := json.Unmarshal([]byte(body), &elements); err != nil {
				tb.Errorf("%q is no array: %v", body, err)
			}

			for _, e := range elements {
				all = append(all, string(e))
			}
		case "lines":
			all = append(all, strings.Fields(body)...)
		default:
			all = append(all, body)
		}
	}

	return all
}

func TestARequestIsWhatTheOptionsSay(t *testing.T) {
	t.Parallel()

	batch := pipelinetest.Messages(`{"a": 1}`, "[2]")

	for _, c := range []struct {
		options      map[string]any
		method, kind string
		bodies       []string
	}{
		{nil, "POST", "application/json", []string{`{"a": 1}`, "[2]"}},
		{map[string]any{"batch": "array", "method": "PUT"}, "PUT", "application/json", []string{`[{"a": 1},[2]]`}},
		{map[string]any{"batch": "lines"}, "POST", "application/x-ndjson", []string{"{\"a\": 1}\n[2]\n"}},
		{
			map[string]any{"batch": "lines", "headers": map[string]any{"Content-Type": "text/plain", "X-Mill": "1"}},
			"POST", "text/plain",
			[]string{"{\"a\": 1}\n[2]\n"},
		},
	} {
		s := serve(t, nil)
		sink := setup(t, s, c.options)

		if err := sink.Write(t.Context(), batch); err != nil {
			t.Fatal(err)
		}

		if got := s.bodies(); !slices.Equal(got, c.bodies) {
			t.Errorf("%v: sent %q, want %q", c.options, got, c.bodies)
		}

		r := s.requests[0]
		if r.Method != c.method || r.Header.Get("Content-Type") != c.kind || r.URL.Path != "/in" {
			t.Errorf("%v: %s %s of type %q", c.options, r.Method, r.URL, r.Header.Get("Content-Type"))
		}

		if c.kind == "text/plain" && r.Header.Get("X-Mill") != "1" {
			t.Errorf("%v: headers %v", c.options, r.Header)
		}

		want := map[string]int64{
			"requests": int64(len(c.bodies)), "messages": 2, "declined": 0, "bytes": int64(len(strings.Join(c.bodies, ""))), "refused": 0, "unreachable": 0,
		}
		if got := sink.Meter(); !maps.Equal(got, want) {
			t.Errorf("%v: counted %v, want %v", c.options, got, want)
		}
	}
}

func TestAServerThatIsDownIsAskedOnce(t *testing.T) {
	t.Parallel()

	for status, requests := range map[int]int64{429: 1, 503: 1, 500: 3, 404: 3} {
		s := serve(t, func(string) int { return status })
		sink := setup(t, s, nil)
		err := sink.Write(t.Context(), pipelinetest.Messages("1", "2", "3"))

		failures, ok := errors.AsType[*pipeline.BatchError](err)
		if !ok || len(failures.Failed) != 3 {
			t.Fatalf("%d: the error is %v", status, err)
		}

		for i, err := range failures.Failed {
			if pipeline.IsRejected(err) != (status == 404) || !strings.Contains(err.Error(), s.URL+"/in: answered") {
				t.Errorf("%d: message %d: %v", status, i, err)
			}
		}

		if got := sink.Meter(); got["requests"] != requests || got["refused"] != requests || got["messages"] != 0 {
			t.Errorf("%d: counted %v, want %d requests", status, got, requests)
		}
	}

	s := serve(t, nil)
	s.Close()

	sink := setup(t, s, nil)
	if err := sink.Write(t.Context(), pipelinetest.Messages("1", "2", "3")); err == nil || pipeline.IsRejected(err) {
		t.Errorf("a server that is not there: %v", err)
	}

	if got := sink.Meter(); got["requests"] != 1 || got["unreachable"] != 1 {
		t.Errorf("counted %v", got)
	}
}

func TestOnlyWhatIsWrongInABatchIsRejected(t *testing.T) {
	t.Parallel()

	s := serve(t, func(body string) int {
		if strings.Contains(body, "9") {
			return http.StatusBadRequest
		}

		return http.StatusOK
	})
	sink := setup(t, s, map[string]any{"batch": "array"})
	err := sink.Write(t.Context(), pipelinetest.Messages("0", "1", "2", "3", "4", "9", "6", "7"))

	failures, ok := errors.AsType[*pipeline.BatchError](err)
	if !ok || len(failures.Failed) != 1 || !pipeline.IsRejected(failures.Failed[5]) {
		t.Errorf("the error is %v, want one that rejects message 5", err)
	}

	// 8, its halves, the halves of the bad one, and again: not one by one.
	if got := sink.Meter(); got["requests"] != 7 || got["messages"] != 7 {
		t.Errorf("counted %v", got)
	}

	all := serve(t, func(string) int { return http.StatusNotFound })
	sink = setup(t, all, map[string]any{"batch": "array"})

	if err := sink.Write(t.Context(), pipelinetest.Messages("0", "1")); err == nil || sink.Meter()["requests"] != 1 {
		t.Errorf("a batch whose address is wrong is sent in parts: %v, %v", sink.Meter(), err)
	}
}

func TestMessagesChooseTheirPathAndHeaders(t *testing.T) {
	t.Parallel()

	for batch, bodies := range map[string][]string{
		"none":  {`/in/a%2Fb?k=a%2Fb h=x {"n":0}`, `/in/a%2Fb?k=a%2Fb h=x {"n":1}`, `/in/a%2Fb?k=a%2Fb h=y {"n":2}`, `/in/c?k=c h=x {"n":3}`, `/in/a%2Fb?k=a%2Fb h=x {"n":4}`},
		"array": {`/in/a%2Fb?k=a%2Fb h=x [{"n":0},{"n":1},{"n":4}]`, `/in/a%2Fb?k=a%2Fb h=y [{"n":2}]`, `/in/c?k=c h=x [{"n":3}]`},
	} {
		s := serve(t, nil)
		sink := setup(t, s, map[string]any{
			"url": s.URL + "/in/{key}?k={key}", "batch": batch, "headers": map[string]any{"x-h": "{tag}"},
			"auth": map[string]any{"header": "X-Api-Key", "secret": "hush"},
		})

		all := pipelinetest.Messages(`{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`, `{"n":5}`, `{"n":6}`)
		for i, key := range []string{"a/b", "a/b", "a/b", "c", "a/b", "..", "c"} {
			all[i].Key, all[i].Tag = key, []string{"x", "x", "y", "x", "x", "x", "x\r\nX-Api-Key: mine"}[i]
		}

		failures, ok := errors.AsType[*pipeline.BatchError](sink.Write(t.Context(), all))
		if !ok || len(failures.Failed) != 2 || !pipeline.IsRejected(failures.Failed[5]) || !pipeline.IsRejected(failures.Failed[6]) {
			t.Errorf("%s: the error is %v, want one that rejects 5 and 6", batch, failures)
		}

		var got []string
		for i, r := range s.requests {
			got = append(got, r.RequestURI+" h="+r.Header.Get("X-H")+" "+s.bodies()[i])

			if r.Header.Get("X-Api-Key") != "hush" {
				t.Errorf("%s: headers %v", batch, r.Header)
			}
		}

		if !slices.Equal(got, bodies) {
			t.Errorf("%s: sent %q, want %q", batch, got, bodies)
		}
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()

	for want, options := range map[string]any{
		"url: is required":                map[string]any{},
		`"example.org" is no address`:     "example.org",
		`headers.X: unknown name "kye"`:   map[string]any{"url": "http://x", "headers": map[string]any{"X": "{kye}"}},
		"url: values can stand behind":    "http://{key}/x",
		"url: is none":                    "http://[hush",
		`"GET" is neither POST nor PUT`:   map[string]any{"url": "http://x", "method": "GET"},
		`"all" is none of none, array`:    map[string]any{"url": "http://x", "batch": "all"},
		"auth: header and secret":         map[string]any{"url": "http://x", "auth": map[string]any{"header": "x"}},
		`retry[0]: "later" is no status;`: map[string]any{"url": "http://x", "retry": []any{"later"}},
	} {
		err := plugins.Decode(options, &httpsink.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}

	if _, err := httpsink.New(httpsink.Options{}); err == nil {
		t.Error("no url is no error")
	}
}

func ExampleSink() {
	// A server that refuses what it does not understand.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("null")) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, "no magnitude")
		}
	}))
	defer server.Close()

	quakes, err := httpsink.New(httpsink.Options{URL: server.URL + "/quakes", Batch: httpsink.BatchLines})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer func() { _ = quakes.Close() }()

	err = quakes.Write(context.Background(), []*pipeline.Message{{Body: []byte(`{"mag":6.4}`)}, {Body: []byte(`{"mag":null}`)}})
	if failures, ok := errors.AsType[*pipeline.BatchError](err); ok {
		fmt.Println(strings.ReplaceAll(failures.Failed[1].Error(), server.URL, "http://example.org"))
	}

	fmt.Println(quakes.Meter())
	// Output:
	// http: POST http://example.org/quakes: answered 422 Unprocessable Entity: "no magnitude"
	// map[bytes:50 declined:0 messages:1 refused:2 requests:3 unreachable:0]
}
