package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/pipeline"
)

// line is a message as [Messages] writes it.
type line struct {
	ID    string            `json:"id,omitempty"`
	Key   string            `json:"key,omitempty"`
	Tag   string            `json:"tag,omitempty"`
	Props map[string]string `json:"props,omitempty"`
	Born  time.Time         `json:"born,omitzero"`
	// Text is a body that is text, Bytes one that is not.
	Text  string `json:"text,omitempty"`
	Bytes []byte `json:"bytes,omitempty"`
}

var errNoText = errors.New("the id, the key, the tag or a property is no text")

// appendLine writes a message, without a line break.
func appendLine(to *bytes.Buffer, m *pipeline.Message) error {
	l := line{ID: m.ID, Key: m.Key, Tag: m.Tag, Props: m.Props, Born: m.Born}

	// JSON would replace what is no text, and nobody would see it.
	text := utf8.ValidString(m.ID) && utf8.ValidString(m.Key) && utf8.ValidString(m.Tag)
	for name, value := range m.Props {
		text = text && utf8.ValidString(name) && utf8.ValidString(value)
	}

	if !text {
		return errNoText
	}

	if utf8.Valid(m.Body) {
		l.Text = string(m.Body)
	} else {
		l.Bytes = m.Body
	}

	encoded, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("as JSON: %w", err)
	}

	to.Write(encoded)

	return nil
}

// parseLine returns the message of a line; what the line does not have, the archive gives.
func parseLine(text []byte, archive *pipeline.Message) (*pipeline.Message, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()

	var l line
	if err := d.Decode(&l); err != nil {
		return nil, fmt.Errorf("is no message: %w", err)
	}

	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("is more than one message")
	}

	if l.Text != "" && l.Bytes != nil {
		return nil, errors.New("has two bodies, text and bytes")
	}

	m := &pipeline.Message{
		ID: l.ID, Topic: archive.Topic, Key: l.Key, Tag: l.Tag, Props: l.Props, Born: l.Born,
		Origin: archive.Origin, Body: l.Bytes,
	}
	if l.Bytes == nil {
		m.Body = []byte(l.Text)
	}

	return m, nil
}
