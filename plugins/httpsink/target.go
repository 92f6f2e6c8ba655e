package httpsink

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/internal/httpcall"
	"github.com/millrace/millrace/plugins/internal/value"
)

// target is where messages go, by their values.
type target struct {
	address     httpcall.Address
	headers     httpcall.Headers
	contentType string
	fixed       *httpcall.Request // the same for all messages; nil where they differ
}

func newTarget(o Options) (*target, error) {
	t := &target{headers: make(httpcall.Headers, len(o.Headers)), contentType: o.Batch.contentType()}

	if err := t.address.UnmarshalText([]byte(o.URL)); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}

	fixed := t.address.IsFixed()

	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		header, err := value.ParseTemplate(o.Headers[name])
		if err != nil {
			return nil, fmt.Errorf("headers.%s: %w", name, err)
		}

		t.headers[name] = header

		_, isFixed := header.Fixed()
		fixed = fixed && isFixed
	}

	if fixed {
		r, _, err := t.of(&pipeline.Message{})
		if err != nil {
			return nil, err
		}

		t.fixed = &r
	}

	return t, nil
}

// of returns a request without a body for m, and a key that is equal for requests that differ in nothing else. It fails when m
// does not have a value, or one that does not fit.
func (t *target) of(m *pipeline.Message) (r httpcall.Request, key string, err error) {
	if t.fixed != nil {
		return *t.fixed, "", nil
	}

	values := value.Of(m)

	if r.URL, err = t.address.Of(values); err != nil {
		return r, "", fmt.Errorf("http: url: %w", err)
	}

	if r.Headers, err = t.headers.Of(values); err != nil {
		return r, "", fmt.Errorf("http: headers: %w", err)
	}

	if _, given := r.Headers["Content-Type"]; !given {
		r.Headers["Content-Type"] = t.contentType
	}

	return r, keyOf(r), nil
}

// keyOf is equal for requests that differ in nothing but their bodies.
func keyOf(r httpcall.Request) string {
	var b strings.Builder

	b.WriteString(r.URL)

	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		b.WriteString("\n" + name + ": " + r.Headers[name])
	}

	return b.String()
}
