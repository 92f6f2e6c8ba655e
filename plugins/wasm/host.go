package wasm

import (
	"context"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// function is one that a module can import from [hostModule]. Its parameters and results are all i32.
type function struct {
	name            string
	params, results int
	call            func(in *instance, m api.Module, stack []uint64) error
}

// functions are all that there are. Nothing that a module passes to them is trusted: an error ends the module's call, and
// the instance with it.
func functions() []function {
	return []function{
		{"emit", 2, 0, (*instance).emit},
		{"pass", 0, 0, (*instance).pass},
		{"get", 4, 1, (*instance).get},
		{"set", 4, 1, (*instance).set},
		{"fail", 2, 0, (*instance).fail},
		{"later", 1, 0, (*instance).later},
		{"log", 2, 0, (*instance).line},
	}
}

// scope is the context of a call of the module, by which our functions find the instance that calls them.
type scope struct {
	context.Context //nolint:containedctx // this is one

	in *instance
}

type scopeKey struct{}

// Value also knows the instance.
func (s *scope) Value(key any) any {
	if key == (scopeKey{}) {
		return s.in
	}

	return s.Context.Value(key)
}

// offer makes the functions known to modules.
func offer(ctx context.Context, r wazero.Runtime) error {
	host := r.NewHostModuleBuilder(hostModule)

	for _, f := range functions() {
		call := api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			in, _ := ctx.Value(scopeKey{}).(*instance)
			if err := f.call(in, m, stack); err != nil {
				panic(fmt.Errorf("%s: %w", f.name, err)) //nolint:forbidigo // this ends the caller; the library makes it an error
			}
		})

		host.NewFunctionBuilder().WithGoModuleFunction(call, i32(f.params), i32(f.results)).Export(f.name)
	}

	if _, err := host.Instantiate(ctx); err != nil {
		return fmt.Errorf("the functions of %s: %w", hostModule, err)
	}

	return nil
}

// view returns bytes of the module's memory, never nil, which are valid until the module runs on.
func view(m api.Module, at, size uint64) ([]byte, error) {
	if memory := m.Memory(); memory != nil {
		if view, ok := memory.Read(uint32(at), uint32(size)); ok && view != nil {
			return view, nil
		}
	}

	return nil, fmt.Errorf("the %d bytes at %d are not in the module's memory", uint32(size), uint32(at))
}

// at fails when no message is worked at.
func (c *call) at() error {
	if c.in == nil {
		return fmt.Errorf("called outside of %s", exportProcess)
	}

	return nil
}

// emit (body, size) makes a message with another body.
func (in *instance) emit(m api.Module, stack []uint64) error {
	body, err := view(m, stack[0], stack[1])
	if err == nil {
		err = in.at()
	}

	if err != nil {
		return err
	}

	return in.output(body)
}

// pass () makes a message with the same body.
func (in *instance) pass(api.Module, []uint64) error {
	if err := in.at(); err != nil {
		return err
	}

	return in.output(nil)
}

// none is what a module gets for a field that there is not: -1.
const none = uint64(^uint32(0))

// get (name, size, to, room) copies a field to the module and returns its length, also when there is no room for all of it,
// or -1 when the message has no such field.
func (in *instance) get(m api.Module, stack []uint64) error {
	name, err := view(m, stack[0], stack[1])
	if err != nil {
		return err
	}

	to, err := view(m, stack[2], stack[3])
	if err == nil {
		err = in.at()
	}

	if err != nil {
		return err
	}

	stack[0] = none

	if value, known := in.field(string(name)); known {
		copy(to, value)

		stack[0] = uint64(uint32(len(value)))
	}

	return nil
}

// set (name, size, value, size) changes a field of what is made from now on, and returns 0, or -1 when there is no such
// field.
func (in *instance) set(m api.Module, stack []uint64) error {
	name, err := view(m, stack[0], stack[1])
	if err != nil {
		return err
	}

	value, err := view(m, stack[2], stack[3])
	if err == nil {
		err = in.at()
	}

	if err != nil {
		return err
	}

	known, err := in.change(string(name), string(value))

	stack[0] = none
	if known {
		stack[0] = 0
	}

	return err
}

// fail (text, size) says why the message is refused, in case that it is.
func (in *instance) fail(m api.Module, stack []uint64) error {
	text, err := view(m, stack[0], stack[1])
	in.text = shorten(text)

	return err
}

// later (ms) says when a message that is refused may come again.
func (in *instance) later(_ api.Module, stack []uint64) error {
	in.delay = time.Duration(uint32(stack[0])) * time.Millisecond

	return nil
}

// line (text, size) writes a line to the log.
func (in *instance) line(m api.Module, stack []uint64) error {
	text, err := view(m, stack[0], stack[1])
	if err == nil {
		in.log.Info(shorten(text))
	}

	return err
}
