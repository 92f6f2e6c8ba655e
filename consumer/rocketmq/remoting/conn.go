package remoting

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// When a connection is given up because nothing comes from it: after so many calls in a row that waited at least so long
// and timed out. Both are guesses: a server that pauses for a few seconds should keep its connection.
const (
	maxSilent  = 3
	minSilence = time.Second
)

// Conn is one connection. It is safe for concurrent use. Only Options.Greet sees it; everybody else calls the [Client].
type Conn struct {
	client *Client
	addr   string
	raw    net.Conn

	// out hands frames to the writer. It holds none: who sends waits with its own deadline, so nothing piles up behind a
	// server that does not read.
	out    chan []byte
	pushed chan struct{} // a token for each request of the server that is being handled
	cancel context.CancelFunc
	done   chan struct{} // closed when the connection has ended; cause is constant then

	mu      sync.Mutex
	cause   error                   // why the connection ended; nil while it lives
	heard   bool                    // whether the server has ever sent anything
	silent  int                     // calls that have timed out since it last did
	retired bool                    // no new calls; the connection ends with the last of those in flight
	opaque  int32                   // of the last call
	calls   map[int32]chan *Command // those in flight, each with room for its answer
}

func newConn(client *Client, addr string, raw net.Conn) *Conn {
	return &Conn{
		client: client,
		addr:   addr,
		raw:    raw,
		out:    make(chan []byte),
		pushed: make(chan struct{}, maxPushed),
		done:   make(chan struct{}),
		calls:  map[int32]chan *Command{},
	}
}

// start starts the goroutines, which run until the connection ends. Client.mu is held.
func (c *Conn) start(ctx context.Context) {
	ctx, c.cancel = context.WithCancel(ctx)

	c.client.running.Go(func() { c.read(ctx) })
	c.client.running.Go(c.write)
}

// Addr returns the address that the connection was made to.
func (c *Conn) Addr() string { return c.addr }

// Call is [Client.Call] over this connection. It never sends a request twice.
func (c *Conn) Call(ctx context.Context, request *Command, accept ...int) (*Command, error) {
	ctx, cancel := c.client.bound(ctx)
	defer cancel()

	response, err := c.exchange(ctx, request)
	if err != nil {
		return nil, err
	}

	if response.Code == GoAway {
		c.retire()
	}

	if response.Code != Success && (response.Code == GoAway || !slices.Contains(accept, response.Code)) {
		return nil, &ResponseError{
			Addr: c.addr, Request: request.Code, Code: response.Code, Remark: response.Remark, Ext: response.Ext,
		}
	}

	return response, nil
}

// Oneway is [Client.Oneway] over this connection.
func (c *Conn) Oneway(ctx context.Context, request *Command) error {
	ctx, cancel := c.client.bound(ctx)
	defer cancel()

	if err := c.check(); err != nil {
		return err
	}

	frame, err := c.frame(request, 0, flagOneway)
	if err != nil {
		return err
	}

	return c.send(ctx, frame, request.Code, time.Now())
}

// exchange sends a request and returns whatever response comes.
func (c *Conn) exchange(ctx context.Context, request *Command) (*Command, error) {
	began := time.Now()

	opaque, answer, err := c.register()
	if err != nil {
		return nil, err
	}
	defer c.forget(opaque)

	frame, err := c.frame(request, opaque, 0)
	if err != nil {
		return nil, err
	}

	if err := c.send(ctx, frame, request.Code, began); err != nil {
		return nil, err
	}

	select {
	case response := <-answer:
		return response, nil
	case <-ctx.Done():
		c.unanswered(ctx, began)

		return nil, ended(ctx, c.addr, request.Code, began, true)
	case <-c.done:
	}

	select {
	case response := <-answer: // it came just before the end
		return response, nil
	default:
		return nil, c.lost(true)
	}
}

// frame writes a request as it goes over the wire, signed.
func (c *Conn) frame(request *Command, opaque, flag int32) ([]byte, error) {
	signed := *request
	signed.Language, signed.Version, signed.Opaque, signed.Flag = Language, Version, opaque, flag

	if credentials := c.client.options.Credentials; credentials != (Credentials{}) {
		signed.Ext = credentials.Sign(request.Ext, request.Body)
	}

	frame, err := AppendFrame(nil, &signed)
	if err != nil {
		return nil, fmt.Errorf("request %d: %w", request.Code, err)
	}

	return frame, nil
}

// send hands a frame to the writer.
func (c *Conn) send(ctx context.Context, frame []byte, request int, began time.Time) error {
	select {
	case c.out <- frame:
		return nil
	case <-ctx.Done():
		return ended(ctx, c.addr, request, began, false)
	case <-c.done:
		return c.lost(false)
	}
}

// register makes a new call known to the reader.
func (c *Conn) register() (opaque int32, answer chan *Command, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if err := c.usable(); err != nil {
		return 0, nil, err
	}

	if len(c.calls) >= c.client.options.MaxCalls {
		return 0, nil, fmt.Errorf("%w: %d to %s", ErrBusy, len(c.calls), c.addr)
	}

	c.opaque++
	for c.calls[c.opaque] != nil { // after four billion calls one may still be in flight
		c.opaque++
	}

	answer = make(chan *Command, 1)
	c.calls[c.opaque] = answer

	return c.opaque, answer, nil
}

// unanswered ends a connection on which calls time out without anything being heard: its host is lost, or what is between
// it and us has forgotten it, and the operating system can take a quarter of an hour to notice.
func (c *Conn) unanswered(ctx context.Context, began time.Time) {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || time.Since(began) < minSilence {
		return
	}

	c.mu.Lock()
	c.silent++
	lost := c.silent >= maxSilent
	c.mu.Unlock()

	if lost {
		c.end(errSilent)
	}
}

// check is usable for who does not hold Conn.mu.
func (c *Conn) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.usable()
}

// usable fails when no new request may use the connection. Conn.mu is held.
func (c *Conn) usable() error {
	switch {
	case c.cause != nil:
		return &ConnectionError{Addr: c.addr, Err: c.cause}
	case c.retired:
		return &ConnectionError{Addr: c.addr, Err: errRetired}
	default:
		return nil
	}
}

// forget ends a call. Its answer, should it still come, is dropped.
func (c *Conn) forget(opaque int32) {
	c.mu.Lock()
	delete(c.calls, opaque)
	last := c.retired && len(c.calls) == 0
	c.mu.Unlock()

	if last {
		c.end(errRetired)
	}
}

// retire takes the connection out of use for new calls; those in flight may finish.
func (c *Conn) retire() {
	c.client.mu.Lock()
	c.mu.Lock()
	c.retired = true
	last := len(c.calls) == 0
	c.mu.Unlock()
	c.client.disown(c, nil, true)
	c.client.mu.Unlock()

	if last {
		c.end(errRetired)
	}
}

// end closes the connection. Only the first cause counts. It is out of its slot before anybody can learn that it has ended:
// who then calls again must not get it another time.
func (c *Conn) end(cause error) {
	c.client.mu.Lock()
	c.mu.Lock()
	first := c.cause == nil

	if first {
		c.cause = cause
	}

	heard := c.heard
	c.mu.Unlock()

	if first {
		c.client.disown(c, cause, heard)
	}

	c.client.mu.Unlock()

	if !first {
		return
	}

	close(c.done)
	c.cancel()

	_ = c.raw.Close()

	if !errors.Is(cause, ErrClosed) {
		c.client.options.Log.Info("connection ended", zap.String("addr", c.addr), zap.Error(cause))
	}
}

// lost returns the error of a call on a connection that has ended.
func (c *Conn) lost(sent bool) error {
	if errors.Is(c.cause, ErrClosed) {
		return ErrClosed
	}

	return &ConnectionError{Addr: c.addr, Sent: sent, Err: c.cause}
}

// ended returns the error of a call whose context has ended.
func ended(ctx context.Context, addr string, request int, began time.Time, sent bool) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &TimeoutError{Addr: addr, Request: request, After: time.Since(began), Sent: sent}
	}

	return fmt.Errorf("remoting: request %d to %s: %w", request, addr, ctx.Err())
}
