package wasm

import (
	"context"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
)

// call is the message that a module works at, and what it has said of it. The functions that the module calls are its
// methods; whatever a module passes to them is checked, and what breaks docs/wasm.md is a failure of the message.
type call struct {
	options *Options
	log     *zap.Logger

	in *pipeline.Message
	// next is what the next output begins as, once something was set; nil: as in.
	next  *pipeline.Message
	outs  []*pipeline.Message
	bytes int64
	text  string
	wrong error
}

func (c *call) begin(m *pipeline.Message) {
	*c = call{options: c.options, log: c.log, in: m, outs: c.outs[:0]}
}

// end returns what came of the message. The outputs are valid until the next call.
func (c *call) end(code uint32) ([]*pipeline.Message, error) {
	text := c.text
	if text == "" {
		text = "refused by the module"
	}

	switch {
	case c.wrong != nil:
		return nil, &refusal{text: c.wrong.Error(), rejected: true}
	case code == codeDone:
		return c.outs, nil
	case code == codeFailed:
		return nil, &refusal{text: text}
	case code == codeRejected:
		return nil, &refusal{text: text, rejected: true}
	default:
		return nil, &refusal{text: fmt.Sprintf("millrace_process returned %d, which is no code", code), rejected: true}
	}
}

// export makes the functions known to the module.
func (c *call) export(ctx context.Context, r wazero.Runtime) error {
	i32 := func(n int) []api.ValueType {
		types := make([]api.ValueType, n)
		for i := range types {
			types[i] = api.ValueTypeI32
		}

		return types
	}

	host := r.NewHostModuleBuilder("millrace_v1")

	for name, f := range map[string]struct {
		call            api.GoModuleFunc
		params, results int
	}{
		"emit": {c.emit, 2, 0}, "get": {c.get, 4, 1}, "set": {c.set, 4, 1}, "fail": {c.fail, 2, 0}, "log": {c.line, 2, 0},
	} {
		host.NewFunctionBuilder().WithGoModuleFunction(f.call, i32(f.params), i32(f.results)).Export(name)
	}

	if _, err := host.Instantiate(ctx); err != nil {
		return fmt.Errorf("the functions of millrace_v1: %w", err)
	}

	return nil
}

// view returns bytes of the module's memory, which are valid until the module runs on. It reports whether there are any.
func (c *call) view(m api.Module, at, size uint64) ([]byte, bool) {
	if memory := m.Memory(); memory != nil {
		if view, ok := memory.Read(uint32(at), uint32(size)); ok {
			return view, true
		}
	}

	c.blame("the module passed %d bytes at %d, which are not in its memory", uint32(size), uint32(at))

	return nil, false
}

// blame keeps the first mistake.
func (c *call) blame(format string, args ...any) {
	if c.wrong == nil {
		c.wrong = fmt.Errorf(format, args...)
	}
}

// emit (body, size) hands on a copy of the message with another body.
func (c *call) emit(_ context.Context, m api.Module, stack []uint64) {
	body, ok := c.view(m, stack[0], stack[1])
	if !ok || c.wrong != nil || c.in == nil {
		return
	}

	c.bytes += int64(len(body))

	switch {
	case len(c.outs) == c.options.Most:
		c.blame("more than %d messages of one; the option most allows more", c.options.Most)
	case c.bytes > int64(c.options.Output):
		c.blame("more than %d bytes emitted; the option output allows more", c.options.Output)
	}

	if c.wrong != nil {
		c.outs = c.outs[:0]
		m.CloseWithExitCode(context.Background(), 1)

		return
	}

	from := c.in
	if c.next != nil {
		from = c.next
	}

	out := from.Clone()
	out.Body = append(make([]byte, 0, len(body)), body...)
	c.outs = append(c.outs, out)
}

// get (name, size, to, room) copies a field to the module and returns its length, also when there is no room for all of it,
// or -1 when the message has no such field.
func (c *call) get(_ context.Context, m api.Module, stack []uint64) {
	name, ok := c.view(m, stack[0], stack[1])
	to, fits := c.view(m, stack[2], stack[3])

	value, known := "", false
	if ok && fits && c.in != nil {
		value, known = field(c.in, string(name))
	}

	if !known {
		stack[0] = uint64(^uint32(0))

		return
	}

	copy(to, value)

	stack[0] = uint64(uint32(len(value)))
}

func field(m *pipeline.Message, name string) (value string, known bool) {
	switch name {
	case "id":
		return m.ID, true
	case "key":
		return m.Key, true
	case "tag":
		return m.Tag, true
	case "topic":
		return m.Topic, true
	}

	if prop, ok := strings.CutPrefix(name, "props."); ok {
		value, known = m.Props[prop]
	}

	return value, known
}

// set (name, size, value, size) changes a field of what is emitted from now on, and returns 0, or -1 when there is no such
// field.
func (c *call) set(_ context.Context, m api.Module, stack []uint64) {
	name, ok := c.view(m, stack[0], stack[1])
	value, fits := c.view(m, stack[2], stack[3])

	if !ok || !fits || c.in == nil || !c.change(string(name), string(value)) {
		stack[0] = uint64(^uint32(0))

		return
	}

	stack[0] = 0
}

func (c *call) change(name, value string) bool {
	if c.bytes += int64(len(name) + len(value)); c.bytes > int64(c.options.Output) {
		c.blame("more than %d bytes set and emitted; the option output allows more", c.options.Output)

		return false
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
			return false
		}

		c.next.SetProp(prop, value)
	}

	return true
}

// fail (text, size) says why the message is refused.
func (c *call) fail(_ context.Context, m api.Module, stack []uint64) {
	if text, ok := c.view(m, stack[0], stack[1]); ok {
		c.text = shorten(text)
	}
}

// line (text, size) writes a line to the log.
func (c *call) line(_ context.Context, m api.Module, stack []uint64) {
	if text, ok := c.view(m, stack[0], stack[1]); ok {
		c.log.Info(shorten(text))
	}
}

// shorten returns a text of at most 4 KiB.
func shorten(text []byte) string {
	const longest = 4 << 10
	if len(text) > longest {
		return strings.ToValidUTF8(string(text[:longest]), "\uFFFD") + "…"
	}

	return strings.ToValidUTF8(string(text), "\uFFFD")
}
