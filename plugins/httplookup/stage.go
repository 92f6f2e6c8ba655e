package httplookup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/document"
	"github.com/millrace/millrace/plugins/expression"
	"github.com/millrace/millrace/plugins/internal/httpcall"
)

// Stage is a server that all lanes ask, and what they remember of its answers. It is safe for concurrent use.
type Stage struct {
	options Options
	target  *httpcall.Target
	client  *httpcall.Client
	clock   plugins.Clock
	cache   *cache // nil when nothing is remembered

	mu sync.Mutex
	// pause is until when the server wants to be left alone; guarded by mu.
	pause time.Time
}

// New returns a stage that is not connected yet. It reads the files that its TLS options name. A nil clock is the real one.
func New(o Options, clock plugins.Clock) (*Stage, error) {
	o, err := o.withDefaults()
	if err == nil {
		err = o.Validate()
	}

	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}

	target, err := o.target()
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}

	client, err := httpcall.New(httpcall.Config{
		Timeout: time.Duration(o.Timeout), MaxAnswer: int64(o.MaxAnswer),
		Accept: o.Accept, Retry: o.Retry, Auth: o.Auth, TLS: o.TLS,
	})
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}

	if clock == nil {
		clock = plugins.RealClock{}
	}

	s := &Stage{options: o, target: target, client: client, clock: clock}

	if o.Cache.For > 0 || o.Cache.Missing > 0 {
		s.cache = newCache(o.Cache, clock)
	}

	return s, nil
}

// Lanes returns the Lane of a new [Stage]. A nil clock is the real one.
func Lanes(o Options, clock plugins.Clock) (func() (pipeline.Transform, error), error) {
	s, err := New(o, clock)
	if err != nil {
		return nil, err
	}

	return s.Lane, nil
}

// Lane returns a transform that shares connections and answers with all others that it returns. Its type is that of a
// [pipeline.Stage].New.
func (s *Stage) Lane() (pipeline.Transform, error) {
	t := &Transform{stage: s}

	if into := s.options.Into; into.InBody() && !into.Path().IsRoot() {
		plan, err := document.NewPlan(document.Changes{Set: []document.Path{into.Path()}})
		if err != nil {
			return nil, fmt.Errorf("http: into: %w", err)
		}

		t.plan = plan
	}

	return t, nil
}

// request is what is asked about a message, and a key that is equal for requests that are the same.
func (s *Stage) request(m *pipeline.Message, scope *expression.Scope) (httpcall.Request, string, error) {
	r, key, err := s.target.Of(m)
	if err != nil {
		return r, "", err //nolint:wrapcheck // names the option
	}

	r.Method, r.WantBody = string(s.options.Method), true

	if s.options.Body.IsZero() {
		return r, key, nil
	}

	scope.Reset(m)

	v, err := s.options.Body.Eval(scope)
	if err != nil {
		return r, "", fmt.Errorf("body: %w", err)
	}

	text, err := v.Text()
	if err != nil {
		return r, "", fmt.Errorf("body: %w", err)
	}

	r.Body = []byte(text)

	return r, key + "\n\n" + text, nil
}

// left returns for how much longer the server wants to be left alone.
func (s *Stage) left() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.pause.Sub(s.clock.Now())
}

// leave keeps all lanes from asking for a while.
func (s *Stage) leave(alone time.Duration) {
	until := s.clock.Now().Add(alone)

	s.mu.Lock()
	defer s.mu.Unlock()

	if until.After(s.pause) {
		s.pause = until
	}
}

// nothing reports whether an error says that the server has nothing for the message.
func nothing(err error) bool {
	status, ok := errors.AsType[*httpcall.StatusError](err)

	return ok && pipeline.IsRejected(err) && (status.Status == http.StatusNotFound || status.Status == http.StatusGone)
}

// taken is what is taken of the body of an answer. It shares no memory with it.
func (s *Stage) taken(body []byte) (answer, error) {
	if len(body) == 0 {
		return answer{missing: true}, nil
	}

	var scope expression.Scope

	scope.Reset(&pipeline.Message{Body: body})

	v, err := s.options.Take.Eval(&scope)

	switch {
	case err != nil:
		return answer{}, fmt.Errorf("the answer %.100q: %w", body, err)
	case v.IsNil():
		return answer{missing: true}, nil
	case s.options.Into.InBody():
		value, err := v.AppendJSON(nil)

		return answer{value: value}, err //nolint:wrapcheck // says all
	default:
		text, err := v.Text()

		return answer{value: []byte(text)}, err //nolint:wrapcheck // says all
	}
}

// ask sends a request and counts it with t.
func (s *Stage) ask(ctx context.Context, r httpcall.Request, t *Transform) (answer, error) {
	if left := s.left(); left > 0 {
		return answer{}, pipeline.RetryAfter(
			fmt.Errorf("not asked, since the server wants to be left alone for another %s", left.Round(time.Millisecond)), left)
	}

	t.requests.Add(1)

	body, err := s.client.Do(ctx, r)

	if _, silent := errors.AsType[*httpcall.UnreachableError](err); silent {
		t.unreachable.Add(1)
	}

	switch {
	case nothing(err):
		return answer{missing: true}, nil
	case err != nil:
		if _, answered := errors.AsType[*httpcall.StatusError](err); answered {
			t.refused.Add(1)
		}

		if delay, asked := pipeline.RetryDelay(err); asked {
			s.leave(delay)
		}

		return answer{}, err //nolint:wrapcheck // names the request
	}

	a, err := s.taken(body)

	return a, pipeline.Reject(err)
}
