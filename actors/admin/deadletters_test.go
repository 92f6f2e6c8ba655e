package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/deadletter"
	"github.com/millrace/millrace/pipeline"
)

// graveyard is a world with n dead letters in the topic "graves", whose queues are two.
func graveyard(t *testing.T, n int) (*world, admin.Options) {
	t.Helper()

	w := setup(t, 1)
	w.CreateTopic("graves", 2)
	w.CreateTopic(consumer.RetryTopic("g"), 1)

	for i := range n {
		props := consumer.Cause{
			Stage: fmt.Sprintf("work/s%d", i%2), Error: "broken", Stack: "goroutine 1", Deliveries: 3,
			Attempts: []consumer.Attempt{{Time: time.Now(), Delivery: 3, Stage: "work/s", Error: "broken"}},
		}.Props("g", time.Now())
		props["mine"] = "p"

		m := &pipeline.Message{ID: fmt.Sprint("m", i), Key: fmt.Sprint("k", i), Props: props, Body: fmt.Append(nil, "hunter2 ", i)}
		if i == 1 {
			m.Body = []byte("\xff\x00")
		}

		if err := w.Publish(t.Context(), "graves", []*pipeline.Message{m}); err != nil {
			t.Fatal(err)
		}
	}

	desk := deadletter.NewDesk(w.Broker, w.Broker)

	return w, admin.Options{DeadLetters: &admin.DeadLetters{
		Shelf:  desk,
		Topics: func(context.Context) ([]string, error) { return []string{"graves"}, nil },
		Where: func(text string) (func(*deadletter.Letter) (bool, error), error) {
			if text == "(" {
				return nil, errors.New("it breaks off")
			}

			return func(l *deadletter.Letter) (bool, error) { return l.Cause().Stage == text, nil }, nil
		},
	}}
}

// client returns a client of the endpoint, without a network.
func (w *world) client(o admin.Options) *admin.Client {
	o.Jobs = &w.jobs

	return &admin.Client{Base: "http://127.0.0.1:7411", HTTP: &http.Client{Transport: inProcess{admin.NewHandler(o)}}}
}

// inProcess makes requests of a handler.
type inProcess struct{ http.Handler }

func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)

	return recorder.Result(), nil
}

func TestDeadLettersAreShownPageByPageAndBodiesOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, o := graveyard(t, 25)
		o.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }

		seen := map[string]int{}
		pages := 0

		for from := ""; ; pages++ {
			answer := w.ask(o, http.MethodGet, "/api/v1/deadletters?max=10"+from, "", nil)
			w.conforms(http.MethodGet, "/api/v1/deadletters", answer)

			if strings.Contains(answer.Body.String(), `"body`) {
				t.Errorf("nobody has asked for bodies: %s", answer.Body)
			}

			var page admin.LetterPage
			if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil {
				t.Fatal(err)
			}

			for _, l := range page.Letters {
				seen[l.Letter]++
			}

			if page.Next == nil {
				break
			}

			from = "&from=" + url.QueryEscape(page.Next.String())
		}

		if len(seen) != 25 || pages != 2 {
			t.Errorf("%d letters in %d pages: %v", len(seen), pages+1, seen)
		}

		bodies := w.ask(o, http.MethodGet, "/api/v1/deadletters?body=true", "", nil)
		w.conforms(http.MethodGet, "/api/v1/deadletters", bodies)

		for _, want := range []string{`"body":"*** 0","redacted":true`, `"bodyBase64":"/wA="`, `"size":9`} {
			if !strings.Contains(bodies.Body.String(), want) {
				t.Errorf("no %s in %s", want, bodies.Body)
			}
		}
	})
}

func TestDeadLettersAreSettledAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, o := graveyard(t, 8)

		for _, c := range []struct {
			path, body, want string
			code             int
		}{
			{"replay", `{}`, `say \"all\": true`, 400},
			{"replay", `{"all": true, "dryRun": true}`, `{"settled":8,`, 200},
			{"replay", `{"topics": ["graves"], "where": "work/s1", "dryRun": true}`, `{"settled":4,`, 200},
			{"replay", `{"topics": ["graves"], "where": "("}`, "where: it breaks off", 400},
			{"replay", `{"topics": ["graves"], "rate": -1}`, "use 0 for no limit", 400},
			{"replay", `{"topics": ["graves"], "rate": 0.01}`, "use one of at least 0.1", 400},
			{"replay", `{"topics": ["graves"], "to": "in", "failedChannel": true}`, "not to both", 400},
			{"replay", `{"topics": ["nosuch"]}`, "nosuch", 422},
			{"replay", `{"letters": ["graves"]}`, "is no place of a dead letter", 400},
			{"replay", `{"letters": ["graves/0/99"]}`, "there is no letter graves/0/99", 404},
			{"replay", `{"letter": "graves/0/0"}`, "unknown field", 400},
			{"replay", `{"letters": ["graves/0/0"]}`, `{"settled":1,`, 200},
			{"replay", `{"letters": ["graves/0/1", "graves/0/0"]}`, `settled before`, 409},
			{"replay", `{"letters": ["graves/0/0"], "again": true, "to": "in"}`, `{"settled":1,`, 200},
			{"drop", `{"letters": ["graves/0/2"]}`, `{"settled":1,`, 200},
			{"edit", `{}`, "names no letter", 400},
			{"edit", `{"letter": "graves/1/0", "body": "x", "bodyBase64": "/w=="}`, "one body", 400},
			{"edit", `{"letter": "graves/1/0", "props": {"millrace.x": "1"}}`, "millrace's own", 422},
			{"edit", `{"letter": "graves/1/0"}`, `{"changed":false}`, 200},
			{"edit", `{"letter": "graves/1/0", "bodyBase64": "/w==", "props": {"p": "v"}, "remove": ["mine"]}`, `{"changed":true}`, 200},
			{"edit", `{"letter": "graves/1/0", "key": "other"}`, "is settled", 409},
			{"drop", `{"all": true}`, `{"settled":4,`, 200},
			{"drop", `{"all": true}`, `{"settled":0,`, 200},
		} {
			answer := w.ask(o, http.MethodPost, "/api/v1/deadletters/"+c.path, c.body, nil)
			w.conforms(http.MethodPost, "/api/v1/deadletters/"+c.path, answer)

			if answer.Code != c.code || !strings.Contains(answer.Body.String(), c.want) {
				t.Errorf("%s %s: %d, want %d %q: %s", c.path, c.body, answer.Code, c.code, c.want, answer.Body)
			}
		}

		bodies := w.bodies(consumer.RetryTopic("g"))
		if len(bodies) != 3 || !slices.Contains(bodies, "\xff") || len(w.bodies("in")) != 1 {
			t.Errorf("published are %q, and %q", bodies, w.bodies("in"))
		}
	})
}

// bodies returns the bodies of what lies in a topic, read as if they were dead letters.
func (w *world) bodies(topic string) []string {
	w.t.Helper()

	var all []string

	err := deadletter.NewDesk(w.Broker, w.Broker).DeadLetters(w.t.Context(), deadletter.Query{Topic: topic, Settled: true},
		func(l *deadletter.Letter) error {
			all = append(all, string(l.Body))

			return nil
		})
	if err != nil {
		w.t.Fatal(err)
	}

	return all
}

// A replay goes on over as many requests as it takes, at its rate, and leaves nothing out.
func TestAReplayByAClientTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, o := graveyard(t, 120)
		letters := w.client(o).DeadLetters()
		rate := 5.0
		began := time.Now()

		var places []deadletter.Place

		err := letters.Visit(t.Context(), admin.Look{Max: 60}, func(l *admin.Letter) error {
			p, _ := deadletter.ParsePlace(l.Letter)
			places = append(places, p)

			return nil
		})
		if err != nil || len(places) != 60 {
			t.Fatalf("%d letters, %v", len(places), err)
		}

		for _, pick := range []admin.Pick{{Letters: places}, {Topics: []string{"graves"}}} {
			n, err := letters.Replay(t.Context(), admin.Replay{Settling: admin.Settling{Pick: pick}, Rate: &rate})
			if n != 60 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}

		if took := time.Since(began); took < 23*time.Second || took > 28*time.Second {
			t.Errorf("120 letters at 5 a second took %v", took)
		}

		if got := len(w.bodies(consumer.RetryTopic("g"))); got != 120 {
			t.Errorf("%d were published", got)
		}
	})
}

func TestAClientSeesWhatThereIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, o := graveyard(t, 130)
		letters := w.client(o).DeadLetters()
		at := deadletter.Place{Queue: pipeline.Queue{Topic: "graves"}}

		changed, err := letters.Edit(t.Context(), admin.Edit{Letter: at, Key: new(string)})
		if !changed || err != nil {
			t.Fatalf("%t, %v", changed, err)
		}

		look := admin.Look{Pick: admin.Pick{Topics: []string{"graves"}, Where: "work/s1"}, Settled: true, Body: true}
		seen := map[string]bool{}

		err = letters.Visit(t.Context(), look, func(l *admin.Letter) error {
			seen[l.Letter] = true

			if l.Stage != "work/s1" || l.Body() == nil || l.ID == "m1" && string(l.Body()) != "\xff\x00" {
				t.Errorf("%+v", l)
			}

			return nil
		})
		if err != nil || len(seen) != 65 {
			t.Errorf("%d letters, %v", len(seen), err)
		}

		if n, err := letters.Drop(t.Context(), admin.Settling{All: true}); n != 129 || err != nil {
			t.Errorf("dropped %d, %v", n, err)
		}

		look = admin.Look{Pick: admin.Pick{Letters: slices.Repeat([]deadletter.Place{at}, 70)}}
		count := 0

		err = letters.Visit(t.Context(), look, func(*admin.Letter) error {
			count++

			return nil
		})
		if err != nil || count != 70 {
			t.Errorf("a letter that is asked for 70 times is shown %d times, %v", count, err)
		}
	})
}

func TestDeadLettersAreForThoseWhoMayAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, o := graveyard(t, 1)
		o.Token = token

		for _, path := range []string{"replay", "drop", "edit"} {
			if a := w.ask(o, http.MethodPost, "/api/v1/deadletters/"+path, `{"all":true}`, nil); a.Code != http.StatusUnauthorized {
				t.Errorf("%s without the token: %d %s", path, a.Code, a.Body)
			}

			a := w.ask(admin.Options{}, http.MethodPost, "/api/v1/deadletters/"+path, `{"all":true}`, nil)
			if a.Code != http.StatusNotFound || !strings.Contains(a.Body.String(), "no dead letters are served here") {
				t.Errorf("%s where there are none: %d %s", path, a.Code, a.Body)
			}
		}

		if a := w.ask(o, http.MethodGet, "/api/v1/deadletters", "", nil); a.Code != http.StatusUnauthorized {
			t.Errorf("the list without the token: %d %s", a.Code, a.Body)
		}
	})
}

// What is asked for is in the document, each field of it.
func TestRequestsForDeadLettersAreInTheDocument(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		text := setup(t, 1).ask(admin.Options{}, http.MethodGet, "/api/v1/openapi.json", "", nil).Body.Bytes()

		whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}

		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("openapi.json", whole); err != nil {
			t.Fatal(err)
		}

		at := deadletter.Place{Queue: pipeline.Queue{Topic: "graves"}}
		word, rate := "x", 1.0
		settling := admin.Settling{
			Pick: admin.Pick{Letters: []deadletter.Place{at}, Topics: []string{word}, Where: word}, All: true, DryRun: true, By: time.Now(),
		}

		for name, request := range map[string]any{
			"Settling": settling,
			"Replay":   admin.Replay{Settling: settling, To: word, FailedChannel: true, Again: true, Rate: &rate},
			"Edit": admin.Edit{
				Letter: at, Key: &word, Tag: &word, Text: &word, Bytes: []byte(word), Props: map[string]string{word: word},
				Remove: []string{word}, To: word, FailedChannel: true, Again: true,
			},
		} {
			schema, err := compiler.Compile("openapi.json#/components/schemas/" + name)
			if err != nil {
				t.Fatal(err)
			}

			text, err := json.Marshal(request)
			if err != nil {
				t.Fatal(err)
			}

			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}

			if err := schema.Validate(value); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// emptyShelf has no letters.
type emptyShelf struct{}

func (emptyShelf) DeadLetters(context.Context, deadletter.Query, func(*deadletter.Letter) error) error {
	return nil
}

func (emptyShelf) Settle(context.Context, string, []deadletter.Settlement) error { return nil }

// Whatever is asked for, it is answered or refused with a reason.
func FuzzDeadLetterRequests(f *testing.F) {
	f.Add("max=10&from=a/0/1&body=true&settled=1&where=x&topic=a", `{"all":true,"rate":0}`)
	f.Add("letter=a@b/0/1&letter=a/0/2", `{"letters":["a/0/1"],"by":"2026-01-02T03:04:05Z","more":1}`)
	f.Add("from=a/0/1", `{"letter":"a/0/1","bodyBase64":"/w==","props":{"a":"b"}}`)

	handler := admin.NewHandler(admin.Options{Jobs: new(admin.Jobs), DeadLetters: &admin.DeadLetters{Shelf: emptyShelf{}}})

	f.Fuzz(func(t *testing.T, query, body string) {
		for path, method := range map[string]string{"": "GET", "/replay": "POST", "/drop": "POST", "/edit": "POST"} {
			r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/api/v1/deadletters"+path, strings.NewReader(body))
			r.URL.RawQuery = query
			r.Header.Set("Content-Type", "application/json")

			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, r)

			var p admin.Problem
			if err := json.Unmarshal(recorder.Body.Bytes(), &p); err != nil || (recorder.Code == http.StatusOK) != (p.Error == "") {
				t.Errorf("%s %q %q: %d %s", path, query, body, recorder.Code, recorder.Body)
			}
		}
	})
}
