//go:build wasip1

// Package guest is for WebAssembly modules in Go that the plugin wasm runs as stages. Such a module is a program that calls
// [Handle] in an init function, built by
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o stage.wasm .
//
// Everything here may only be called by the function that was given to Handle, and before it returns.
package guest

import (
	"errors"
	"math"
	"time"
	"unsafe"
)

// What [millraceProcess] returns; docs/wasm.md.
const (
	done     = 0
	failed   = 1
	rejected = 2
)

//nolint:gochecknoglobals // a module has one instance, and its exports have nothing else to keep anything in
var (
	handler func(body []byte) error
	buffer  []byte
)

// Handle makes f the function that gets the body of each message. The bytes are valid until f returns. When f emits nothing,
// the message is filtered. An error fails the message, and nothing that was emitted counts then; one that is marked by
// [Reject] sends it to the dead letters, and [RetryAfter] says when it is delivered again.
func Handle(f func(body []byte) error) { handler = f }

// Pass hands on a copy of the message with what [Set] has changed until now.
func Pass() { pass() }

// Emit is [Pass] with another body, of which the bytes may be used again when Emit has returned.
func Emit(body []byte) { emit(unsafe.Pointer(unsafe.SliceData(body)), uint32(len(body))) }

// Get returns a field of the message as it came: id, key, tag, topic, or a property as props.NAME. Empty where it has none.
func Get(name string) string {
	value := make([]byte, 64)

	for {
		n := get(text(name), uint32(len(name)), unsafe.Pointer(unsafe.SliceData(value)), uint32(len(value)))

		switch {
		case n < 0:
			return ""
		case int(n) <= len(value):
			return string(value[:n])
		}

		value = make([]byte, n)
	}
}

// Set changes a field (id, key, tag or props.NAME) of what is emitted from now on. It panics for other names.
func Set(name, value string) {
	if set(text(name), uint32(len(name)), text(value), uint32(len(value))) != 0 {
		panic("guest: no field " + name) //nolint:forbidigo // a mistake of the program, found by its first message
	}
}

// Log writes a line to the job's log.
func Log(line string) { log(text(line), uint32(len(line))) }

type rejection struct{ error }

func (r rejection) Unwrap() error { return r.error }

// Reject marks an error: the message goes to the dead letters at once. Reject(nil) is nil.
func Reject(err error) error {
	if err == nil {
		return nil
	}

	return rejection{err}
}

type retry struct {
	error

	delay time.Duration
}

func (r retry) Unwrap() error { return r.error }

// RetryAfter marks an error: the message is delivered again after the delay. RetryAfter(nil, delay) is nil.
func RetryAfter(err error, delay time.Duration) error {
	if err == nil {
		return nil
	}

	return retry{error: err, delay: delay}
}

func text(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }

// millraceAlloc returns where the bodies of the next messages are put.
//
//go:wasmexport millrace_alloc
func millraceAlloc(size uint32) unsafe.Pointer {
	buffer = make([]byte, size)

	return unsafe.Pointer(unsafe.SliceData(buffer))
}

// millraceProcess works at the message whose body is in the buffer.
//
//go:wasmexport millrace_process
func millraceProcess(_ unsafe.Pointer, size uint32) uint32 {
	err := handler(buffer[:size:size])
	if err == nil {
		return done
	}

	reason := err.Error()
	fail(text(reason), uint32(len(reason)))

	if again, ok := errors.AsType[retry](err); ok {
		later(uint32(min(max(again.delay.Milliseconds(), 0), math.MaxUint32)))
	}

	if _, ok := errors.AsType[rejection](err); ok {
		return rejected
	}

	return failed
}

//go:wasmimport millrace_v1 emit
func emit(body unsafe.Pointer, size uint32)

//go:wasmimport millrace_v1 pass
func pass()

//go:wasmimport millrace_v1 get
func get(name unsafe.Pointer, nameSize uint32, to unsafe.Pointer, room uint32) int32

//go:wasmimport millrace_v1 set
func set(name unsafe.Pointer, nameSize uint32, value unsafe.Pointer, size uint32) int32

//go:wasmimport millrace_v1 fail
func fail(reason unsafe.Pointer, size uint32)

//go:wasmimport millrace_v1 later
func later(ms uint32)

//go:wasmimport millrace_v1 log
func log(line unsafe.Pointer, size uint32)
