package remoting

import (
	"bufio"
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"go.uber.org/zap"
)

const (
	readBuffer = 64 << 10
	// maxPushed is how many requests of one server are handled at a time.
	maxPushed = 64
)

// read takes frames off the connection until it ends.
func (c *Conn) read(ctx context.Context) {
	r := bufio.NewReaderSize(c.raw, readBuffer)

	for {
		command, err := ReadFrame(r)
		if err != nil {
			c.end(err)

			return
		}

		c.mu.Lock()
		c.heard, c.silent = true, 0
		c.mu.Unlock()

		if command.IsResponse() {
			c.deliver(command)
		} else {
			c.accept(ctx, command)
		}
	}
}

// deliver gives a response to its call. One that nobody waits for any more is dropped: it carries no state.
func (c *Conn) deliver(response *Command) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if answer := c.calls[response.Opaque]; answer != nil {
		delete(c.calls, response.Opaque)
		answer <- response // never blocks: it has room for one, and is not in the map any more
	}
}

// accept has a request of the server handled, without ever blocking the reader.
func (c *Conn) accept(ctx context.Context, request *Command) {
	select {
	case c.pushed <- struct{}{}:
	default:
		c.client.options.Log.Warn("request of a server dropped: too many at a time",
			zap.String("addr", c.addr), zap.Int("code", request.Code))

		return
	}

	c.client.running.Go(func() {
		defer func() { <-c.pushed }()

		answer := c.handle(ctx, request)
		if !request.IsOneway() {
			c.answer(ctx, request, answer)
		}
	})
}

// handle runs the handler, whose panic is the request's failure.
func (c *Conn) handle(ctx context.Context, request *Command) (answer *Command) {
	defer func() {
		if cause := recover(); cause != nil {
			answer = &Command{Code: SystemError, Remark: strings.ToValidUTF8(fmt.Sprintf("panic: %v", cause), "?")}

			c.client.options.Log.Error("handler of a server's request panicked", zap.String("addr", c.addr),
				zap.Int("code", request.Code), zap.Any("panic", cause), zap.ByteString("stack", debug.Stack()))
		}
	}()

	answer = c.client.options.Handle(ctx, c.addr, request)
	if answer == nil {
		answer = &Command{Code: NotSupported, Remark: fmt.Sprintf("request code %d is not supported", request.Code)}
	}

	return answer
}

// answer sends the answer to a request of the server. When that fails the server's own time-out tells it.
func (c *Conn) answer(ctx context.Context, request, answer *Command) {
	response := *answer
	response.Language, response.Version, response.Opaque, response.Flag = Language, Version, request.Opaque, flagResponse

	frame, err := AppendFrame(nil, &response)
	if err != nil {
		c.client.options.Log.Error("answer to a server's request cannot be sent", zap.String("addr", c.addr),
			zap.Int("code", request.Code), zap.Error(err))

		return
	}

	select {
	case c.out <- frame:
	case <-ctx.Done():
	}
}
