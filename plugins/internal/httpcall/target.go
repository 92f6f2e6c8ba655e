package httpcall

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/internal/value"
)

// Target is where requests go, and with which headers, by the values of a message. It is safe for concurrent use.
type Target struct {
	address     Address
	headers     Headers
	contentType string
	fixed       *Request // the same for all messages; nil where they differ
}

// NewTarget returns a target. URL and headers are templates; a contentType that is not empty is a header, too, unless the
// headers have one. It fails for what is no template or no address.
func NewTarget(url string, headers map[string]string, contentType string) (*Target, error) {
	t := &Target{headers: make(Headers, len(headers)), contentType: contentType}

	if err := t.address.UnmarshalText([]byte(url)); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}

	fixed := t.address.IsFixed()

	for _, name := range slices.Sorted(maps.Keys(headers)) {
		header, err := value.ParseTemplate(headers[name])
		if err != nil {
			return nil, fmt.Errorf("headers.%s: %w", name, err)
		}

		t.headers[name] = header

		_, isFixed := header.Fixed()
		fixed = fixed && isFixed
	}

	if fixed {
		r, _, err := t.Of(&pipeline.Message{})
		if err != nil {
			return nil, err
		}

		t.fixed = &r
	}

	return t, nil
}

// Of returns a request without method and body for m, and a key that is equal for requests that differ in nothing else. It fails
// when m does not have a value, or one that does not fit.
func (t *Target) Of(m *pipeline.Message) (r Request, key string, err error) {
	if t.fixed != nil {
		return *t.fixed, "", nil
	}

	values := value.Of(m)

	if r.URL, err = t.address.Of(values); err != nil {
		return r, "", fmt.Errorf("url: %w", err)
	}

	if r.Headers, err = t.headers.Of(values); err != nil {
		return r, "", fmt.Errorf("headers: %w", err)
	}

	if _, given := r.Headers["Content-Type"]; !given && t.contentType != "" {
		r.Headers["Content-Type"] = t.contentType
	}

	return r, keyOf(r), nil
}

// keyOf is equal for requests that differ in nothing but their bodies.
func keyOf(r Request) string {
	var b strings.Builder

	b.WriteString(r.URL)

	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		b.WriteString("\n" + name + ": " + r.Headers[name])
	}

	return b.String()
}
