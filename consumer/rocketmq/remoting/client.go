package remoting

import (
	"context"
	"errors"
	"sync"
)

// Client makes calls to any number of servers, over one connection an address. It is safe for concurrent use. Whoever made
// it closes it.
type Client struct {
	options Options
	running sync.WaitGroup // all goroutines

	mu     sync.Mutex
	closed bool
	slots  map[string]*slot
	live   map[*Conn]struct{} // all connections that have not ended, also those that no slot has any more
}

// NewClient returns a client without any connection.
func NewClient(o Options) *Client {
	return &Client{options: o.orDefaults(), slots: map[string]*slot{}, live: map[*Conn]struct{}{}}
}

// Call sends a request and returns the response, when its code is [Success] or one of accept. It blocks until then or
// until ctx ends; without a deadline it gets Options.CallTimeout. The request is not changed.
//
// It fails with a [*ResponseError] on any other code, with a [*TimeoutError] when the deadline passes, with a
// [*ConnectionError] when there is no connection or when it is lost, and with [ErrBusy], [ErrTooLarge] or [ErrClosed]. While
// an address cannot be reached, calls to it fail at once between the attempts to connect, which grow apart to 10 s.
//
// A request is sent a second time only when the first was certainly not carried out: the connection ended before it was
// sent, or the server said that it goes away. The second goes over a new connection.
func (c *Client) Call(ctx context.Context, addr string, request *Command, accept ...int) (*Command, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()

	for again := true; ; again = false {
		conn, err := c.connect(ctx, addr, request.Code)
		if err != nil {
			return nil, err
		}

		response, err := conn.Call(ctx, request, accept...)
		if err == nil || !again || !untouched(err) {
			return response, err
		}
	}
}

// Oneway sends a request that is not answered. Nil says that it is on its way, not that it arrives. It fails as Call does.
func (c *Client) Oneway(ctx context.Context, addr string, request *Command) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()

	for again := true; ; again = false {
		conn, err := c.connect(ctx, addr, request.Code)
		if err != nil {
			return err
		}

		if err = conn.Oneway(ctx, request); err == nil || !again || !untouched(err) {
			return err
		}
	}
}

// Close ends all connections, and fails the calls under way. It waits for all goroutines of the client, those that run
// Options.Handle included, so it must not be called from there. Repeated calls do nothing.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true

	for _, s := range c.slots {
		if s.dial != nil {
			s.dial.cancel()
		}
	}

	conns := make([]*Conn, 0, len(c.live))
	for conn := range c.live {
		conns = append(conns, conn)
	}
	c.mu.Unlock()

	for _, conn := range conns {
		conn.end(ErrClosed)
	}

	c.running.Wait()
}

// bound gives a context without a deadline the default one.
func (c *Client) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return ctx, func() {}
	}

	return context.WithTimeout(ctx, c.options.CallTimeout)
}

// untouched reports whether the server has certainly not carried out the request, and a new connection may help.
func untouched(err error) bool {
	if response, ok := errors.AsType[*ResponseError](err); ok {
		return response.Code == GoAway
	}

	lost, ok := errors.AsType[*ConnectionError](err)

	return ok && !lost.Sent && !errors.Is(err, ErrClosed)
}
