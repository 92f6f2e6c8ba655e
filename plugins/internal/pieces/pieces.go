// Package pieces cuts bodies into lines and into the elements of JSON arrays, without copying.
package pieces

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// space is what JSON takes for it, which is less than Unicode does.
const space = " \t\r\n"

// Lines yields what stands between line breaks (\n or \r\n), empty lines left out.
func Lines(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range bytes.SplitSeq(body, []byte("\n")) {
			line = bytes.TrimSuffix(line, []byte("\r"))
			if len(line) > 0 && !yield(slices.Clip(line)) {
				return
			}
		}
	}
}

// Elements yields the elements of a JSON array. It fails when the body is none, before anything is yielded.
func Elements(body []byte) (iter.Seq[[]byte], error) {
	trimmed := bytes.Trim(body, space)

	if len(trimmed) == 0 || trimmed[0] != '[' {
		return nil, errors.New("is no JSON array")
	}

	if !json.Valid(trimmed) {
		return nil, notJSON(trimmed)
	}

	return func(yield func([]byte) bool) { elements(trimmed[1:len(trimmed)-1], yield) }, nil
}

func notJSON(body []byte) error {
	var v json.RawMessage
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Errorf("is no JSON array: %w", err)
	}

	return errors.New("is no JSON array")
}

// elements cuts what stands between the brackets of a valid array.
func elements(inner []byte, yield func([]byte) bool) {
	start, depth := 0, 0

	for i := 0; i < len(inner); i++ {
		switch inner[i] {
		case '"':
			i = stringEnd(inner, i)
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth > 0 {
				continue
			}

			if !yield(element(inner[start:i])) {
				return
			}

			start = i + 1
		}
	}

	if last := element(inner[start:]); len(last) > 0 {
		yield(last)
	}
}

// stringEnd returns where the string that begins at i ends.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}

	return i
}

// element has no room at its end, so that to append to it copies it.
func element(text []byte) []byte {
	text = bytes.Trim(text, space)

	return slices.Clip(text)
}
