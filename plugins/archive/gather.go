// Package archive makes one message of many, and many of one again.
package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/millrace/millrace/pipeline"
)

// Gather makes an archive of each batch. It belongs to one lane.
type Gather struct {
	counts

	format Format
}

var (
	_ pipeline.BatchTransform = (*Gather)(nil)
	_ pipeline.Meter          = (*Gather)(nil)
)

// New returns a gather stage.
func New(o Options) (*Gather, error) {
	if o.Format > Messages {
		return nil, fmt.Errorf("batch: there is no format %d", o.Format)
	}

	return &Gather{format: o.Format}, nil
}

// TransformBatch emits the archive of a batch; of one in which nothing fits the format, none.
func (g *Gather) TransformBatch(_ context.Context, batch []*pipeline.Message, emit pipeline.Emit) error {
	var (
		body     bytes.Buffer
		archive  *pipeline.Message
		failures pipeline.BatchError
		n        int
	)

	if g.format == Array {
		body.WriteByte('[')
	}

	for i, m := range batch {
		before := body.Len()

		if archive != nil {
			body.WriteByte(g.separator())
		}

		if err := g.write(&body, m); err != nil {
			failures.Fail(i, pipeline.Reject(fmt.Errorf("batch: %w", err)))
			body.Truncate(before)

			continue
		}

		archive = join(archive, m)
		n++
	}

	if archive == nil {
		return failures.Err()
	}

	body.WriteByte(map[Format]byte{Lines: '\n', Array: ']', Messages: '\n'}[g.format])

	archive.Body = body.Bytes()
	if err := emit(archive); err != nil {
		return err
	}

	g.add(n)

	return failures.Err()
}

func (g *Gather) separator() byte {
	if g.format == Array {
		return ','
	}

	return '\n'
}

// join adds m to what the messages of an archive have in common.
func join(archive, m *pipeline.Message) *pipeline.Message {
	if archive == nil {
		return &pipeline.Message{ID: m.ID, Topic: m.Topic, Key: m.Key, Tag: m.Tag, Born: m.Born, Origin: m.Origin}
	}

	if archive.Key != m.Key {
		archive.Key = ""
	}

	if archive.Tag != m.Tag {
		archive.Tag = ""
	}

	return archive
}

func (g *Gather) write(to *bytes.Buffer, m *pipeline.Message) error {
	switch g.format {
	case Array:
		if err := json.Compact(to, m.Body); err != nil {
			return fmt.Errorf("the body is no JSON: %w", err)
		}

		return nil
	case Messages:
		return appendLine(to, m)
	case Lines:
	}

	text := bytes.TrimSuffix(bytes.TrimSuffix(m.Body, []byte("\n")), []byte("\r"))
	if bytes.IndexByte(text, '\n') < 0 {
		to.Write(text)

		return nil
	}

	if json.Compact(to, text) == nil {
		return nil
	}

	return errors.New("the body has several lines; the format messages takes it")
}
