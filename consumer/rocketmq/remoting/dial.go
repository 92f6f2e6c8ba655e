package remoting

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// How attempts to connect to an address that cannot be reached grow apart.
const (
	firstBackOff = 100 * time.Millisecond
	maxBackOff   = 10 * time.Second
)

// slot is what the client knows of one address. It is guarded by Client.mu.
type slot struct {
	conn *Conn // the one in use, or nil
	dial *dial // the attempt under way, or nil

	failures  int       // attempts that failed in a row
	err       error     // of the last of them
	notBefore time.Time // of the next attempt
}

// dial is one attempt to connect, shared by all who need the connection.
type dial struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the attempt has ended; conn and err are constant then
	conn   *Conn
	err    error
}

// failed notes an attempt that did not lead to a connection that works.
func (s *slot) failed(err error) {
	pause := min(firstBackOff<<min(s.failures, 10), maxBackOff)
	s.failures++
	s.err = err
	s.notBefore = time.Now().Add(pause/2 + rand.N(pause/2))
}

// connect returns the connection to an address. The first to need it starts an attempt, which goes on when its caller
// gives up, since others may wait for it.
func (c *Client) connect(ctx context.Context, addr string, request int) (*Conn, error) {
	began := time.Now()

	c.mu.Lock()

	if c.closed {
		c.mu.Unlock()

		return nil, ErrClosed
	}

	s := c.slots[addr]
	if s == nil {
		s = &slot{}
		c.slots[addr] = s
	}

	if conn := s.conn; conn != nil {
		c.mu.Unlock()

		return conn, nil
	}

	if s.dial == nil {
		if pause := s.notBefore.Sub(began); pause > 0 {
			err := fmt.Errorf("not tried again for %v: %w", pause.Round(time.Millisecond), s.err)
			c.mu.Unlock()

			return nil, &ConnectionError{Addr: addr, Err: err}
		}

		c.start(ctx, addr, s)
	}

	d := s.dial
	c.mu.Unlock()

	select {
	case <-d.done:
		return d.conn, d.err
	case <-ctx.Done():
		return nil, ended(ctx, addr, request, began, false)
	}
}

// start begins an attempt. Client.mu is held.
func (c *Client) start(ctx context.Context, addr string, s *slot) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.DialTimeout)
	d := &dial{cancel: cancel, done: make(chan struct{})}
	s.dial = d

	c.running.Go(func() {
		defer cancel()

		conn, err := c.open(ctx, addr)

		c.mu.Lock()
		defer c.mu.Unlock()

		s.dial = nil

		switch {
		case c.closed:
			d.err = ErrClosed
		case err != nil:
			s.failed(err)
			d.err = &ConnectionError{Addr: addr, Err: err}
		default:
			// One that has ended in the meantime stays out of the slot; who waited finds out when using it.
			if conn.check() == nil {
				s.conn = conn
			}

			d.conn = conn
		}

		close(d.done)
	})
}

// open makes a connection that is ready for calls.
func (c *Client) open(ctx context.Context, addr string) (*Conn, error) {
	raw, err := c.options.Dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}

	if c.options.TLS != nil {
		if raw, err = handshake(ctx, raw, addr, c.options.TLS); err != nil {
			return nil, err
		}
	}

	conn := newConn(c, addr, raw)
	if !c.adopt(ctx, conn) {
		_ = raw.Close()

		return nil, ErrClosed
	}

	if err := c.options.Greet(ctx, conn); err != nil {
		conn.end(fmt.Errorf("greeting: %w", err))

		return nil, fmt.Errorf("greeting: %w", err)
	}

	return conn, nil
}

// adopt makes conn one of the client's and starts it, unless the client is closed.
func (c *Client) adopt(ctx context.Context, conn *Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.closed {
		return false
	}

	c.live[conn] = struct{}{}
	conn.start(context.WithoutCancel(ctx))

	return true
}

// disown takes a connection out of use; cause is nil while it still has to finish calls. An ended one is not the client's
// any more. One that ended without anything having come over it counts as a failed attempt, so that a server that hangs up
// at once is not called in a loop. Client.mu is held.
func (c *Client) disown(conn *Conn, cause error, heard bool) {
	if cause != nil {
		delete(c.live, conn)
	}

	s := c.slots[conn.addr]
	if s.conn == conn {
		s.conn = nil

		if cause != nil && !heard {
			s.failed(cause)
		}
	}

	if heard {
		s.failures = 0
	}
}

// handshake puts TLS over raw, which it closes when that fails.
func handshake(ctx context.Context, raw net.Conn, addr string, config *tls.Config) (net.Conn, error) {
	config = config.Clone()
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			_ = raw.Close()

			return nil, fmt.Errorf("tls: %w", err)
		}

		config.ServerName = host
	}

	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()

		return nil, fmt.Errorf("tls: %w", err)
	}

	return conn, nil
}
