package remoting

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrFrame is returned for bytes that are no frame, and for a Command that no frame can carry unchanged.
	ErrFrame = errors.New("remoting: broken frame")
	// ErrTooLarge is returned for a Command that passes one of the limits of a frame. Nothing of it was sent.
	ErrTooLarge = errors.New("remoting: too large for a frame")
	// ErrBusy is returned when Options.MaxCalls calls are in flight on the connection. Nothing was sent.
	ErrBusy = errors.New("remoting: too many calls in flight on one connection")
	// ErrClosed is returned by every call after, and under way at, [Client.Close].
	ErrClosed = errors.New("remoting: the client is closed")

	// errRetired ends a connection whose server goes away, when the last call on it is done.
	errRetired = errors.New("the server goes away")
	// errSilent ends a connection on which calls time out and nothing is heard.
	errSilent = errors.New("nothing heard from the server while calls timed out")
)

// ResponseError is returned when the other side answered with a code that the caller does not accept.
type ResponseError struct {
	// Addr is who answered, Request the code of what it was asked.
	Addr    string
	Request int
	// Code and Remark are the answer's; the remark is for people.
	Code   int
	Remark string
	// Ext are the answer's fields.
	Ext map[string]string
}

var _ error = (*ResponseError)(nil)

// Error names who was asked what, the code, and the remark.
func (e *ResponseError) Error() string {
	name := responseName(e.Code)
	if name != "" {
		name = " (" + name + ")"
	}

	return fmt.Sprintf("remoting: %s answered request %d with code %d%s: %s", e.Addr, e.Request, e.Code, name, e.Remark)
}

// ConnectionError is returned when there is no connection, or none any more.
type ConnectionError struct {
	Addr string
	// Sent tells whether the request may have reached the other side, and may have been carried out.
	Sent bool
	Err  error
}

var _ error = (*ConnectionError)(nil)

// Error names the address and what happened to the connection.
func (e *ConnectionError) Error() string {
	if e.Sent {
		return fmt.Sprintf("remoting: connection to %s lost before the answer: %v", e.Addr, e.Err)
	}

	return fmt.Sprintf("remoting: no connection to %s: %v", e.Addr, e.Err)
}

// Unwrap returns what happened to the connection.
func (e *ConnectionError) Unwrap() error { return e.Err }

// TimeoutError is returned when a call's deadline passed. It wraps [context.DeadlineExceeded].
type TimeoutError struct {
	Addr string
	// Request is the code of the request, After how long the call had waited.
	Request int
	After   time.Duration
	// Sent tells whether the request may have reached the other side, and may be carried out still.
	Sent bool
}

var _ error = (*TimeoutError)(nil)

// Error names who was asked what, and how long it took.
func (e *TimeoutError) Error() string {
	what := "no answer"
	if !e.Sent {
		what = "not even sent"
	}

	return fmt.Sprintf("remoting: request %d to %s: %s within %v", e.Request, e.Addr, what, e.After.Round(time.Millisecond))
}

// Timeout is true.
func (e *TimeoutError) Timeout() bool { return true }

// Unwrap returns [context.DeadlineExceeded].
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }
