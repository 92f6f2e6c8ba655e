package wasm

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// What millrace_process returns.
const (
	codeDone     = 0
	codeFailed   = 1
	codeRejected = 2
)

// call is the message that a module works at, and what it has said of it so far.
type call struct {
	options *Options

	in *pipeline.Message // nil while the module works at none
	// next is what the next output begins as, once something was set; nil: as in.
	next  *pipeline.Message
	outs  []*pipeline.Message
	bytes int64
	text  string
	delay time.Duration
}

// refusal is what a module says of a message that it does not take; the module itself is well.
type refusal struct{ err error }

// Error is the module's reason.
func (r *refusal) Error() string { return r.err.Error() }

// Unwrap returns the reason, which pipeline may have marked.
func (r *refusal) Unwrap() error { return r.err }

func (c *call) begin(m *pipeline.Message) {
	*c = call{options: c.options, in: m, outs: c.outs[:0]}
}

// end returns what came of the message, by what the module returned: outputs, which are valid until the next call, a
// [*refusal], or another error when the module broke the rules.
func (c *call) end(code uint32) ([]*pipeline.Message, error) {
	c.in, c.next = nil, nil

	reason := errors.New("refused by the module")
	if c.text != "" {
		reason = errors.New(c.text)
	}

	switch {
	case code == codeDone:
		return c.outs, nil
	case code == codeRejected:
		return nil, &refusal{pipeline.Reject(reason)}
	case code == codeFailed && c.delay > 0:
		return nil, &refusal{pipeline.RetryAfter(reason, c.delay)}
	case code == codeFailed:
		return nil, &refusal{reason}
	default:
		return nil, fmt.Errorf("%s returned %d, which is no result", exportProcess, int32(code))
	}
}

// output adds a message that was made. A nil body is that of the message.
func (c *call) output(body []byte) error {
	if len(c.outs) == c.options.Most {
		return fmt.Errorf("it made more than %d messages of one; the option most allows more", c.options.Most)
	}

	from := c.in
	if c.next != nil {
		from = c.next
	}

	// Everything is copied but the message's own body.
	if err := c.spend(len(body) + from.Size() - len(from.Body) + perProp*len(from.Props)); err != nil {
		return err
	}

	out := from.Clone()
	if body != nil {
		out.Body = append(make([]byte, 0, len(body)), body...)
	}

	c.outs = append(c.outs, out)

	return nil
}

// perProp is about what a property costs beside its bytes; a guess.
const perProp = 64

// spend counts bytes against the limit.
func (c *call) spend(n int) error {
	if c.bytes += int64(n); c.bytes > int64(c.options.Output) {
		return fmt.Errorf("it emitted more than %d bytes of one message; the option output allows more", c.options.Output)
	}

	return nil
}

// field returns a field of the message as it came, and whether there is one.
func (c *call) field(name string) (value string, known bool) {
	switch m := c.in; name {
	case "id":
		return m.ID, true
	case "key":
		return m.Key, true
	case "tag":
		return m.Tag, true
	case "topic":
		return m.Topic, true
	default:
		if prop, ok := strings.CutPrefix(name, "props."); ok {
			value, known = m.Props[prop]
		}

		return value, known
	}
}

// change sets a field of what is made from now on, and reports whether there is one.
func (c *call) change(name, value string) (known bool, err error) {
	if err := c.spend(len(name) + len(value) + perProp); err != nil {
		return false, err
	}

	if c.next == nil {
		c.next = c.in.Clone()
	}

	switch name {
	case "id":
		c.next.ID = value
	case "key":
		c.next.Key = value
	case "tag":
		c.next.Tag = value
	default:
		prop, ok := strings.CutPrefix(name, "props.")
		if !ok {
			return false, nil
		}

		c.next.SetProp(prop, value)
	}

	return true, nil
}

// longest is how much of a text of the module is kept, in bytes.
const longest = 4 << 10

// shorten returns a text of the module as one that can be logged.
func shorten(text []byte) string {
	if len(text) > longest {
		return strings.ToValidUTF8(string(text[:longest]), "\uFFFD") + "…"
	}

	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// firstLine returns the beginning of what the library says of a trap; its other lines are a stack.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	line, _ = strings.CutSuffix(line, " (recovered by wazero)")

	if reason, ok := strings.CutPrefix(line, "wasm error: "); ok {
		line = "the module has trapped: " + reason
	}

	return shorten([]byte(line))
}
