package value

import (
	"fmt"
	"strconv"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/document"
)

// Reader reads the values of one message. It belongs to one goroutine, and the message must not change meanwhile.
type Reader struct{ m *pipeline.Message }

// Of returns a reader of m.
func Of(m *pipeline.Message) *Reader { return &Reader{m: m} }

// Lookup returns a value as text: a text of the body without its quotes, anything else there as it is written. Ok is false for
// what the message does not have, and for null. It fails when the body is needed and is no JSON.
func (r *Reader) Lookup(v Value) (text string, ok bool, err error) {
	switch {
	case v.text == "":
		return "", false, nil
	case !v.field.IsZero():
		return v.field.Of(r.m), true, nil
	}

	switch v.text {
	case "born":
		text = r.born(time.RFC3339Nano)
	case "month":
		text = r.born("2006-01")
	case "day":
		text = r.born(time.DateOnly)
	case "hour":
		text = r.born("2006-01-02T15")
	case "delivery":
		text = strconv.Itoa(r.m.Origin.Delivery)
	default:
		d, err := document.Of(r.m)
		if err != nil {
			return "", false, err //nolint:wrapcheck // names all that there is to name
		}

		part := d.Get(v.path)
		if part.Kind() <= document.Null {
			return "", false, nil
		}

		return part.Text(), true, nil
	}

	return text, text != "", nil
}

// born is empty for a message without a birth.
func (r *Reader) born(form string) string {
	if r.m.Born.IsZero() {
		return ""
	}

	return r.m.Born.UTC().Format(form)
}

// Text returns a value as [Reader.Lookup] does, and fails with [ErrMissing] when there is none.
func (r *Reader) Text(v Value) (string, error) {
	text, ok, err := r.Lookup(v)
	if err == nil && !ok {
		err = fmt.Errorf("%s: %w", v, ErrMissing)
	}

	return text, err
}
