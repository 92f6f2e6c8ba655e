package rocketmqfake

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

const (
	flagResponse = 1
	flagOneway   = 2
)

// server is one address that answers requests.
type server struct {
	cluster *Cluster
	addr    string
	// handle answers a request, or returns nil when it answers later or not at all; gone is told of connections that ended.
	// Both are called with Cluster.mu held.
	handle func(l *link, r *remoting.Command) *remoting.Command
	gone   func(l *link)

	listener net.Listener // with Options.TCP, while up
	up       bool
	links    map[*link]struct{}
}

// start makes the server reachable, at the address that it had before.
func (s *server) start() error {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()

	if s.up {
		return nil
	}

	if s.cluster.options.TCP {
		if err := s.listen(); err != nil {
			return err
		}
	}

	s.up = true

	return nil
}

func (s *server) listen() error {
	addr := s.addr
	if s.listener == nil {
		addr = "127.0.0.1:0"
	}

	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return fmt.Errorf("rocketmqfake: %w", err)
	}

	s.listener, s.addr = listener, listener.Addr().String()

	s.cluster.running.Go(func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}

			s.serve(raw)
		}
	})

	return nil
}

// stop makes the server unreachable and ends its connections.
func (s *server) stop() {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()

	if s.listener != nil && s.up {
		_ = s.listener.Close()
	}

	s.up = false

	for l := range s.links {
		l.end()
	}
}

// serve takes a connection, unless the server is down.
func (s *server) serve(raw net.Conn) bool {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()

	if !s.up || s.cluster.closed {
		_ = raw.Close()

		return false
	}

	l := &link{server: s, raw: raw, wake: make(chan struct{}, 1), asked: map[int32]func(*remoting.Command){}}
	s.links[l] = struct{}{}

	s.cluster.running.Go(l.read)
	s.cluster.running.Go(l.write)

	return true
}

// link is one connection of a client.
type link struct {
	server *server
	raw    net.Conn
	wake   chan struct{}
	once   sync.Once

	// Guarded by Cluster.mu.
	ended  bool
	queue  [][]byte // frames to write; unbounded, so that no answer waits for a client that does not read
	opaque int32
	asked  map[int32]func(*remoting.Command) // what to do with the client's answers to our requests
}

func (l *link) read() {
	c := l.server.cluster

	for {
		r, err := remoting.ReadFrame(l.raw)

		c.mu.Lock()

		if err != nil || l.ended {
			l.end()
			c.mu.Unlock()

			return
		}

		if r.IsResponse() {
			if then := l.asked[r.Opaque]; then != nil {
				delete(l.asked, r.Opaque)
				then(r)
			}
		} else {
			l.dispatch(r)
		}

		c.mu.Unlock()
	}
}

// dispatch answers a request, faults permitting.
func (l *link) dispatch(r *remoting.Command) {
	if !l.server.cluster.faultBefore(l, r) {
		return
	}

	if late := l.server.cluster.faults.LateUpkeep; late > 0 && (r.Code == remoting.Heartbeat || r.Code == remoting.LockQueues) {
		l.server.cluster.after(late, func() { l.carryOut(r) })

		return
	}

	l.carryOut(r)
}

func (l *link) carryOut(r *remoting.Command) {
	if answer := l.server.handle(l, r); answer != nil {
		l.answer(r, answer)
	}
}

// answer sends the answer to a request of the client's.
func (l *link) answer(r, answer *remoting.Command) {
	if r.IsOneway() || l.ended {
		return
	}

	answer.Opaque, answer.Flag = r.Opaque, flagResponse
	l.server.cluster.faultAfter(l, answer)
}

// push sends a request to the client; then gets its answer, nil means that none is wanted.
func (l *link) push(r *remoting.Command, then func(*remoting.Command)) {
	l.opaque++
	r.Opaque, r.Flag = l.opaque, flagOneway

	if then != nil {
		r.Flag = 0
		l.asked[r.Opaque] = then
	}

	l.send(r)
}

func (l *link) send(r *remoting.Command) {
	r.Language, r.Version = "JAVA", remoting.Version

	frame, err := remoting.AppendFrame(nil, r)
	if err != nil {
		l.end()

		return
	}

	l.sendBytes(frame)
}

func (l *link) sendBytes(frame []byte) {
	if l.ended {
		return
	}

	l.queue = append(l.queue, frame)

	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write sends what is queued until the connection ends.
func (l *link) write() {
	for range l.wake {
		l.server.cluster.mu.Lock()
		frames := l.queue
		l.queue = nil
		l.server.cluster.mu.Unlock()

		for _, frame := range frames {
			if _, err := l.raw.Write(frame); err != nil {
				_ = l.raw.Close() // the reader notices

				break
			}
		}
	}
}

// end ends the connection. Cluster.mu is held.
func (l *link) end() {
	l.once.Do(func() {
		l.ended = true
		_ = l.raw.Close()
		close(l.wake)
		delete(l.server.links, l)

		if l.server.gone != nil {
			l.server.gone(l)
		}
	})
}

func ok(ext map[string]string, body []byte) *remoting.Command {
	return &remoting.Command{Ext: ext, Body: body}
}

func fail(code int, format string, args ...any) *remoting.Command {
	return &remoting.Command{Code: code, Remark: fmt.Sprintf(format, args...)}
}
