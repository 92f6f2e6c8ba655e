package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// The names of what can be asked about, in queries, paths and labels.
const (
	jobKey   = "job"
	queueKey = "queue"
)

// Route is a request that is answered.
type Route struct {
	// Method and Path are as in the patterns of [http.ServeMux]; a path that ends in a slash has all below it. Every method
	// but GET changes something: a web page of another origin is refused, and the body must be JSON.
	Method, Path string
	// Open says that no token is needed.
	Open bool
	// MaxBody is the most of a request's body that is read, in bytes; 0 means 64 KiB.
	MaxBody int64
	// Serve answers. The request's body is bounded and its context ends in time; see [Answer].
	Serve http.HandlerFunc
}

// routes are all that is served. A new route has a line here, and its place in openapi.json.
func (h *handler) routes() []Route {
	return append([]Route{
		{Method: http.MethodGet, Path: "/{$}", Open: true, Serve: page},
		{Method: http.MethodGet, Path: "/page/", Open: true, Serve: page},
		{Method: http.MethodGet, Path: "/healthz", Open: true, Serve: h.health},
		{Method: http.MethodGet, Path: "/readyz", Open: true, Serve: h.ready},
		{Method: http.MethodGet, Path: "/metrics", Serve: h.metrics()},
		{Method: http.MethodGet, Path: "/api/v1/openapi.json", Serve: h.openAPI},
		{Method: http.MethodGet, Path: "/api/v1/status", Serve: h.answer(h.status)},
		{Method: http.MethodGet, Path: "/api/v1/topology", Serve: h.answer(h.topology)},
		{Method: http.MethodGet, Path: "/api/v1/why", Serve: h.answer(h.why)},
		{Method: http.MethodPost, Path: "/api/v1/jobs/{job}/pause", Serve: h.answer(h.pause)},
		{Method: http.MethodPost, Path: "/api/v1/jobs/{job}/resume", Serve: h.answer(h.resume)},
		{Method: http.MethodPost, Path: "/api/v1/jobs/{job}/seek", Serve: h.answer(h.seek)},
		{Method: http.MethodPost, Path: "/api/v1/jobs/{job}/drain", Serve: h.answer(h.drain)},
		{Method: http.MethodGet, Path: "/api/v1/deadletters", Serve: h.answer(h.deadLetters)},
		{Method: http.MethodPost, Path: "/api/v1/deadletters/replay", MaxBody: maxNames, Serve: h.answer(h.replayLetters)},
		{Method: http.MethodPost, Path: "/api/v1/deadletters/drop", MaxBody: maxNames, Serve: h.answer(h.dropLetters)},
		{Method: http.MethodPost, Path: "/api/v1/deadletters/edit", MaxBody: maxEdit, Serve: h.answer(h.editLetter)},
	}, h.o.Routes...)
}

// answer makes a handler of what returns a value or an error, for answers that are redacted.
func (h *handler) answer(ask func(*http.Request) (any, error)) http.HandlerFunc {
	return Answer(h.o.Redact, ask)
}

// Answer makes a handler of what returns a value, which is written as JSON, or an error, which is a [Problem]. Nil instead of
// redact changes nothing.
func Answer(redact func(string) string, ask func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK

		v, err := ask(r)
		if err != nil {
			status, v = statusOf(err), Problem{Error: err.Error()}
		}

		text, err := json.Marshal(v)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)

			return
		}

		if redact != nil {
			text = []byte(redact(string(text)))
		}

		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)

		_, _ = w.Write(append(text, '\n'))
	}
}

// requestTime is how long a request may take; a seek waits for running work of its queue.
const requestTime = 25 * time.Second

// The most of a request's body that is read: of a list of letters, of a letter's new body, and of any other.
const (
	maxBody  = 64 << 10
	maxNames = 1 << 20
	maxEdit  = 16 << 20
)

// bounded gives a request its bounds.
func bounded(w http.ResponseWriter, r *http.Request, most int64) (*http.Request, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTime)
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, cmp.Or(most, maxBody))

	return r, cancel
}
