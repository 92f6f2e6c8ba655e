package httplookup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/document"
	"github.com/millrace/millrace/plugins/expression"
	"github.com/millrace/millrace/plugins/httplookup"
	"github.com/millrace/millrace/plugins/internal/place"
)

func TestALookupIsATransform(t *testing.T) {
	t.Parallel()

	w := setup(t, nil, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a":
			_, _ = io.WriteString(w, ` {"n": 12345678901234567890.0, "l": [1]} `)
		case "/broken":
			_, _ = io.WriteString(w, `<html>`)
		case "/down":
			w.WriteHeader(http.StatusBadGateway)
		case "/denied":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	again := func(err error) bool { return !pipeline.IsRejected(err) }
	nothing := func(err error) bool {
		return pipeline.IsRejected(err) && errors.Is(err, httplookup.ErrNothing) && strings.Contains(err.Error(), "GET "+w.URL+"/none")
	}

	pipelinetest.TestTransform(t, func() (pipeline.Transform, error) { return w.lane(t), nil },
		pipelinetest.Case{
			Name: "an answer", In: message("a", `{"x":1.50}`),
			Want: []*pipeline.Message{message("a", `{"x":1.50,"answer":{"n": 12345678901234567890.0, "l": [1]}}`)},
		},
		pipelinetest.Case{Name: "nothing", In: message("none", `{}`), Fails: nothing},
		pipelinetest.Case{Name: "no JSON", In: message("a", `{`), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "no object", In: message("a", `[]`), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "an answer that is no JSON", In: message("broken", `{}`), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "no address", In: message("..", `{}`), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "a token that has expired", In: message("denied", `{}`), Fails: again},
		pipelinetest.Case{Name: "a server that is down", In: message("down", `{}`), Fails: again},
	)
}

func TestTheAnswerGoesWhereItIsWanted(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		options    map[string]any
		answer     string
		body, prop string
	}{
		{map[string]any{"into": "body.a.b"}, `{"n":1}`, `{"k":0,"a":{"b":{"n":1}}}`, ""},
		{map[string]any{"into": "body.k", "take": "body.n + 1"}, `{"n":1}`, `{"k":2}`, ""},
		{map[string]any{"into": "body"}, ` {"n":1}`, `{"n":1}`, ""},
		{map[string]any{"into": "body", "take": "text"}, `x"y`, `"x\"y"`, ""},
		{map[string]any{"into": "props.p"}, "any <text>", `{"k":0}`, "any <text>"},
		{map[string]any{"into": "props.p", "take": "body.list[0]"}, `{"list":["x"]}`, `{"k":0}`, "x"},
		{map[string]any{"into": "props.p", "take": "body.list"}, `{"list":["x"]}`, `{"k":0}`, `["x"]`},
		{map[string]any{"into": "props.p", "take": "body.none", "missing": "pass"}, `{}`, `{"k":0}`, ""},
		{map[string]any{"into": "body.a", "missing": "pass"}, ``, `{"k":0}`, ""},
	} {
		w := setup(t, c.options, says(c.answer))

		m, err := pass(t.Context(), w.lane(t), "key", `{"k":0}`)
		if err != nil || string(m.Body) != c.body || m.Props["p"] != c.prop {
			t.Errorf("%v of %s: %v, %v", c.options, c.answer, m, err)

			continue
		}

		if d, err := document.Of(m); err != nil || string(d.Source()) != c.body {
			t.Errorf("%v: the stages behind see %v, %v", c.options, d, err)
		}
	}
}

func TestTheStagesBehindDoNotParseTheBodyAgain(t *testing.T) {
	t.Parallel()

	w := setup(t, map[string]any{"into": "body.k"}, says("1"))

	m, err := pass(t.Context(), w.lane(t), "key", `{"k":0}`)
	if err != nil {
		t.Fatal(err)
	}

	if d, ok := m.Memo().(*document.Document); !ok || string(d.Get(document.Name("k")).Raw()) != "1" {
		t.Errorf("the message has %v with it", m.Memo())
	}
}

func TestARequestIsMadeOfTheMessage(t *testing.T) {
	t.Parallel()

	for want, options := range map[string]map[string]any{
		"GET /a%2Fb?q=1%26 ":          {"url": "/{key}?q={body.q}"},
		"GET /k ":                     {"url": "/k"},
		"POST /k text 1&":             {"url": "/k", "method": "POST", "body": `"text " + body.q`},
		`PUT /a%2Fb {"ids":["1&",2]}`: {"method": "PUT", "body": `{ids: [body.q, 2]}`},
	} {
		var kind, header string

		options["headers"] = map[string]any{"x-key": "{key}"}
		options["auth"] = map[string]any{"bearer": "hush"}

		w := setup(t, options, func(w http.ResponseWriter, r *http.Request) {
			kind, header = r.Header.Get("Content-Type"), r.Header.Get("X-Key")+" "+r.Header.Get("Authorization")
			_, _ = io.WriteString(w, "1")
		})

		_, err := pass(t.Context(), w.lane(t), "a/b", `{"q":"1&"}`)
		if got := w.requests(); err != nil || len(got) != 1 || got[0] != want || header != "a/b Bearer hush" {
			t.Errorf("got %q with %q, %v, want %q", got, header, err, want)
		}

		if (kind == "application/json") != (options["body"] != nil) {
			t.Errorf("%s: the type is %q", want, kind)
		}
	}
}

func TestTheOptionSaysWhatBecomesOfAMessageWithoutAnAnswer(t *testing.T) {
	t.Parallel()

	for missing, want := range map[string]string{"reject": "rejected", "pass": "passed", "drop": "dropped"} {
		for name, answer := range map[string]http.HandlerFunc{
			"404": status(404), "410": status(410), "an empty answer": status(204), "nil": says(`{"name":null}`),
		} {
			w := setup(t, map[string]any{"missing": missing, "take": "body.name"}, answer)
			lane := w.lane(t)
			m, err := pass(t.Context(), lane, "k", `{}`)

			got := "passed"

			switch {
			case pipeline.IsRejected(err) && errors.Is(err, httplookup.ErrNothing):
				got = "rejected"
			case err != nil:
				t.Error(err)
			case m == nil:
				got = "dropped"
			case string(m.Body) != "{}":
				t.Errorf("%s: the body is %s", name, m.Body)
			}

			if counts := lane.Meter(); got != want || counts["missing"] != 1 || counts["refused"] != 0 || counts["found"] != 0 {
				t.Errorf("%s, %s: %s, counted %v", name, missing, got, counts)
			}
		}
	}

	for option, text := range map[string]string{"accept": "answer", "retry": "answered 404"} {
		w := setup(t, map[string]any{"into": "props.p", option: []any{404}}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "answer")
		})

		m, err := pass(t.Context(), w.lane(t), "k", `{}`)
		if got := fmt.Sprint(m, err); pipeline.IsRejected(err) || !strings.Contains(got, text) {
			t.Errorf("404 in %s: %s", option, got)
		}
	}
}

func TestAServerIsLeftAloneAsLongAsItWants(t *testing.T) {
	t.Parallel()

	down := true
	w := setup(t, map[string]any{"cache": "1h"}, func(w http.ResponseWriter, r *http.Request) {
		if down && r.URL.Path != "/known" {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusServiceUnavailable)
		} else {
			_, _ = io.WriteString(w, "1")
		}
	})
	first, second := w.lane(t), w.lane(t)

	ask := func(lane *httplookup.Transform, key string, want time.Duration) {
		t.Helper()

		_, err := pass(t.Context(), lane, key, `{}`)

		delay, _ := pipeline.RetryDelay(err)
		if delay != want || pipeline.IsRejected(err) || (err == nil) != (want == 0) {
			t.Errorf("%s: %v, to be tried again after %v, want %v", key, err, delay, want)
		}
	}

	ask(first, "known", 0)
	ask(first, "a", 30*time.Second)
	w.clock.forward(10 * time.Second)
	ask(second, "b", 20*time.Second)
	ask(second, "known", 0) // which is remembered
	w.clock.forward(20 * time.Second)

	down = false

	ask(second, "b", 0)

	if got, want := w.requests(), []string{"GET /known ", "GET /a ", "GET /b "}; !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}

	if counts := first.Meter(); counts["refused"] != 1 || counts["requests"] != 2 {
		t.Errorf("counted %v", counts)
	}
}

func TestAServerThatIsNotThereIsAskedAgain(t *testing.T) {
	t.Parallel()

	w := setup(t, map[string]any{"timeout": "50ms"}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	lane := w.lane(t)

	_, err := pass(t.Context(), lane, "k", `{}`)
	if err == nil || pipeline.IsRejected(err) || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("the error is %v", err)
	}

	if counts := lane.Meter(); counts["unreachable"] != 1 || counts["requests"] != 1 || counts["refused"] != 0 {
		t.Errorf("counted %v", counts)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()

	for want, options := range map[string]map[string]any{
		"url: is required":              {"into": "body"},
		"into: is required":             {"url": "http://x"},
		"into: the answer is one value": {"url": "http://x", "into": "props"},
		`into: "prop.x" is no place`:    {"url": "http://x", "into": "prop.x"},
		"url: values can stand behind":  {"url": "http://{key}/", "into": "body"},
		"body: a GET has none":          {"url": "http://x", "into": "body", "body": "body"},
		`take: unknown name "nam"`:      {"url": "http://x", "into": "body", "take": "nam"},
		`method: "HEAD" is none of`:     {"url": "http://x", "into": "body", "method": "HEAD"},
		`missing: "fail" is none of`:    {"url": "http://x", "into": "body", "missing": "fail"},
		"cache: for or missing is":      {"url": "http://x", "into": "body", "cache": map[string]any{"size": "1MiB"}},
	} {
		if err := plugins.Decode(options, &httplookup.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}

	if _, err := httplookup.New(httplookup.Options{}, nil); err == nil {
		t.Error("no url is no error")
	}
}

func ExampleStage() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"name":"station %s"}`, strings.TrimPrefix(r.URL.Path, "/stations/"))
	}))
	defer server.Close()

	into, _ := place.Parse("body.station.name")
	take, _ := expression.Parse("body.name")

	stage, err := httplookup.New(httplookup.Options{
		URL: server.URL + "/stations/{body.station.id}", Into: into, Take: take,
		Cache: httplookup.Cache{For: plugins.Duration(time.Minute)},
	}, nil)
	if err != nil {
		fmt.Println(err)

		return
	}

	lane, _ := stage.Lane() // once for each lane, as Stage.New

	for range 2 {
		m := &pipeline.Message{Body: []byte(`{"station":{"id":"XA"},"mag":4}`)}

		err = lane.Transform(context.Background(), m, func(m *pipeline.Message) error {
			fmt.Println(string(m.Body))

			return nil
		})
	}

	fmt.Println(err, lane.(pipeline.Meter).Meter()["requests"])
	// Output:
	// {"station":{"id":"XA","name":"station XA"},"mag":4}
	// {"station":{"id":"XA","name":"station XA"},"mag":4}
	// <nil> 1
}
