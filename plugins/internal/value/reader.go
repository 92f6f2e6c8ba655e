package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// Reader reads the values of one message, whose body it parses at most once. It belongs to one goroutine, and the message must
// not change meanwhile.
type Reader struct {
	m      *pipeline.Message
	parsed bool
	doc    any
	err    error
}

// Of returns a reader of m.
func Of(m *pipeline.Message) *Reader { return &Reader{m: m} }

// Get returns a value: text, or what the body has there: nil, a bool, a [json.Number], text, a slice or a map of these, which
// must not be changed. What is not there is nil. It fails when the body is needed and is not JSON.
func (r *Reader) Get(v Value) (any, error) {
	switch {
	case v.text == "":
		return nil, nil //nolint:nilnil // as said above
	case !v.field.IsZero():
		return v.field.Of(r.m), nil
	}

	switch v.text {
	case "born":
		return r.born(time.RFC3339Nano), nil
	case "month":
		return r.born("2006-01"), nil
	case "day":
		return r.born(time.DateOnly), nil
	case "hour":
		return r.born("2006-01-02T15"), nil
	case "delivery":
		return json.Number(strconv.Itoa(r.m.Origin.Delivery)), nil
	}

	doc, err := r.Body()
	if err != nil {
		return nil, err
	}

	for _, s := range v.path {
		doc = s.of(doc)
	}

	return doc, nil
}

// born is nil for a message without a birth.
func (r *Reader) born(form string) any {
	if r.m.Born.IsZero() {
		return nil
	}

	return r.m.Born.UTC().Format(form)
}

func (s step) of(doc any) any {
	if s.index < 0 {
		object, _ := doc.(map[string]any)

		return object[s.name]
	}

	list, _ := doc.([]any)
	if s.index >= len(list) {
		return nil
	}

	return list[s.index]
}

// Body returns the document in the body.
func (r *Reader) Body() (any, error) {
	if !r.parsed {
		r.parsed = true
		r.doc, r.err = parse(r.m.Body)
	}

	return r.doc, r.err
}

func parse(text []byte) (doc any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()

	if err = d.Decode(&doc); err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more behind it")
		}
	}

	if err != nil {
		return nil, fmt.Errorf("the body is not a JSON document: %w", err)
	}

	return doc, nil
}

// Text returns a value as text; a list or an object as JSON. It fails with [ErrMissing] for nil.
func (r *Reader) Text(v Value) (string, error) {
	got, err := r.Get(v)
	if err != nil {
		return "", err
	}

	switch got := got.(type) {
	case nil:
		return "", fmt.Errorf("%s: %w", v, ErrMissing)
	case string:
		return got, nil
	case json.Number:
		return got.String(), nil
	default:
		text, err := json.Marshal(got)
		if err != nil {
			return "", fmt.Errorf("%s: %w", v, err)
		}

		return string(text), nil
	}
}
