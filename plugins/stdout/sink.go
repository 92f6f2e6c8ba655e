// Package stdout is the sink that prints messages, for trying a job out.
package stdout

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Options say what a [Sink] prints.
type Options struct {
	// Show is what is printed of a message. The zero value is [ShowBody].
	Show Show `default:"body" help:"What is printed of a message: its body, or all of it as one line of JSON." option:"show,main"`
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Prints each message as a line to the standard output; for trying a job out.",
		Text: "A body that ends in a line break gets no second one; a body of several lines is printed as it is. Whoever " +
			"reads the output sets the pace: a pipe that nobody reads stops the channel.",
		Example: "stdout: { show: message }",
		Metrics: []plugins.Metric{
			{Name: "messages", Help: "Messages printed."},
			{Name: "bytes", Help: "Bytes printed."},
		},
	}
}

// Show says what is printed of a message.
type Show uint8

// What can be printed.
const (
	// ShowBody: the body, unchanged.
	ShowBody Show = iota
	// ShowMessage: id, topic, key, tag, properties, birth and body, as one line of JSON. A body that is not JSON is text in it.
	ShowMessage
)

var (
	_ encoding.TextUnmarshaler = (*Show)(nil)
	_ plugins.Typed            = Show(0)
)

// OptionType lists what can be printed.
func (Show) OptionType() (name string, values []string) { return "text", []string{"body", "message"} }

// UnmarshalText parses body or message.
func (s *Show) UnmarshalText(text []byte) error {
	switch string(text) {
	case "body":
		*s = ShowBody
	case "message":
		*s = ShowMessage
	default:
		return fmt.Errorf("%q is neither body nor message", text)
	}

	return nil
}

// Sink prints messages. Lines of different batches do not mix. It is safe for concurrent use.
type Sink struct {
	show Show
	to   io.Writer

	mu     sync.Mutex // guards to and what is below
	buffer bytes.Buffer

	messages, bytes atomic.Int64
}

var (
	_ pipeline.Sink  = (*Sink)(nil)
	_ pipeline.Meter = (*Sink)(nil)
)

// New returns a sink that prints to the writer, which stays the caller's to close.
func New(o Options, to io.Writer) (*Sink, error) {
	if to == nil {
		return nil, errors.New("stdout: a writer is required")
	}

	return &Sink{show: o.Show, to: to}, nil
}

// Write prints the batch in one call of the writer. After an error a part of the batch may have been printed, which is
// printed again when the batch is tried again.
func (s *Sink) Write(ctx context.Context, batch []*pipeline.Message) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stdout: %w", err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.buffer.Reset()

	for _, m := range batch {
		if err := s.print(m); err != nil {
			return fmt.Errorf("stdout: %w", err)
		}
	}

	n := int64(s.buffer.Len())
	if n == 0 {
		return nil
	}

	if _, err := s.buffer.WriteTo(s.to); err != nil {
		return fmt.Errorf("stdout: %w", err)
	}

	s.messages.Add(int64(len(batch)))
	s.bytes.Add(n)

	return nil
}

// print puts the line of a message into the buffer.
func (s *Sink) print(m *pipeline.Message) error {
	line := m.Body

	if s.show == ShowMessage {
		var err error
		if line, err = json.Marshal(shown(m)); err != nil {
			return fmt.Errorf("message %q as JSON: %w", m.ID, err)
		}
	}

	s.buffer.Write(line)

	if !bytes.HasSuffix(line, []byte("\n")) {
		s.buffer.WriteByte('\n')
	}

	return nil
}

// Meter returns how much was printed.
func (s *Sink) Meter() map[string]int64 {
	return map[string]int64{"messages": s.messages.Load(), "bytes": s.bytes.Load()}
}

// line is a message as [ShowMessage] prints it.
type line struct {
	ID    string            `json:"id,omitempty"`
	Topic string            `json:"topic,omitempty"`
	Key   string            `json:"key,omitempty"`
	Tag   string            `json:"tag,omitempty"`
	Props map[string]string `json:"props,omitempty"`
	Born  time.Time         `json:"born,omitzero"`
	Body  any               `json:"body"`
}

func shown(m *pipeline.Message) line {
	l := line{ID: m.ID, Topic: m.Topic, Key: m.Key, Tag: m.Tag, Props: m.Props, Born: m.Born, Body: string(m.Body)}

	if json.Valid(m.Body) {
		l.Body = json.RawMessage(m.Body)
	}

	return l
}
