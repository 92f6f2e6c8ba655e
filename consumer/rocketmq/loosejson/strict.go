// Package loosejson reads the JSON that RocketMQ's Java code writes and no parser of standard JSON accepts: objects whose keys
// are objects, numbers or bare words, such as {"offsetTable":{{"queueId":0,"topic":"T"}:12}}.
package loosejson

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The most that is read: bodies are far smaller, and deeper ones mean nothing here.
const (
	maxSize  = 16 << 20
	maxDepth = 32
)

// ErrSyntax is returned for bytes that are not even this dialect, are too long, or nest too deep.
var ErrSyntax = errors.New("loosejson: no JSON, not even RocketMQ's")

// Strict returns the same document in standard JSON: a key that is not a string becomes the string of its own text, so that
// {{"a":1}:2} is {"{\"a\":1}":2}.
func Strict(loose []byte) ([]byte, error) {
	if len(loose) > maxSize {
		return nil, fmt.Errorf("%w: %d bytes", ErrSyntax, len(loose))
	}

	r := &reader{in: loose}
	out, err := r.value(nil, 0)

	if err == nil && r.peek() != 0 {
		err = r.wrong()
	}

	if err != nil {
		return nil, err
	}

	if !json.Valid(out) {
		return nil, fmt.Errorf("%w: a literal that means nothing", ErrSyntax)
	}

	return out, nil
}

// reader reads a document from its beginning to its end.
type reader struct {
	in []byte
	at int
}

func (r *reader) wrong() error { return fmt.Errorf("%w, at byte %d", ErrSyntax, r.at) }

// peek skips space and returns the next byte, 0 at the end.
func (r *reader) peek() byte {
	for r.at < len(r.in) {
		switch c := r.in[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}

	return 0
}

// value appends the next value to out.
func (r *reader) value(out []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, r.wrong()
	}

	switch r.peek() {
	case '{':
		return r.list(out, depth, '}', r.member)
	case '[':
		return r.list(out, depth, ']', r.value)
	case '"':
		return r.text(out)
	default:
		return r.literal(out)
	}
}

// list appends what is between brackets, items with commas between them.
func (r *reader) list(
	out []byte, depth int, end byte, item func([]byte, int) ([]byte, error),
) ([]byte, error) {
	out = append(out, r.in[r.at])
	r.at++

	for first := true; r.peek() != end; first = false {
		if !first {
			if r.peek() != ',' {
				return nil, r.wrong()
			}

			r.at++

			out = append(out, ',')
		}

		var err error
		if out, err = item(out, depth+1); err != nil {
			return nil, err
		}
	}

	r.at++

	return append(out, end), nil
}

// member appends a key and its value.
func (r *reader) member(out []byte, depth int) ([]byte, error) {
	isText := r.peek() == '"'

	key, err := r.value(nil, depth)
	if err != nil {
		return nil, err
	}

	if !isText {
		if key, err = json.Marshal(string(key)); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
		}
	}

	if r.peek() != ':' {
		return nil, r.wrong()
	}

	r.at++

	return r.value(append(append(out, key...), ':'), depth)
}

// text appends a string as it stands.
func (r *reader) text(out []byte) ([]byte, error) {
	start := r.at
	for r.at++; r.at < len(r.in); r.at++ {
		switch r.in[r.at] {
		case '\\':
			r.at++
		case '"':
			r.at++

			return append(out, r.in[start:r.at]...), nil
		}
	}

	return nil, r.wrong()
}

// literal appends a number or a word.
func (r *reader) literal(out []byte) ([]byte, error) {
	start := r.at

	for r.at < len(r.in) {
		switch c := r.in[r.at]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '+', c == '.', c == '_':
			r.at++
		default:
			if r.at == start {
				return nil, r.wrong()
			}

			return append(out, r.in[start:r.at]...), nil
		}
	}

	if r.at == start {
		return nil, r.wrong()
	}

	return append(out, r.in[start:r.at]...), nil
}
