package remoting_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// patience is how long a test waits for what has to happen.
const patience = 20 * time.Second

// peer is a server whose every move the test makes itself.
type peer struct {
	net.Listener
}

func listen(t *testing.T) *peer {
	t.Helper()

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })

	return &peer{listener}
}

func (p *peer) addr() string { return p.Addr().String() }

// accept returns the next connection.
func (p *peer) accept(t *testing.T) *side {
	t.Helper()

	_ = p.Listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience))

	conn, err := p.Accept()
	if err != nil {
		t.Fatal(err)
	}

	_ = conn.SetDeadline(time.Now().Add(patience))

	t.Cleanup(func() { _ = conn.Close() })

	return &side{conn}
}

// side is the server's side of a connection.
type side struct {
	net.Conn
}

// next returns the next frame.
func (s *side) next(t *testing.T) *remoting.Command {
	t.Helper()

	c, err := remoting.ReadFrame(s)
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// request returns the next frame, which must be a request with this code.
func (s *side) request(t *testing.T, code int) *remoting.Command {
	t.Helper()

	c := s.next(t)
	if c.IsResponse() || c.Code != code {
		t.Fatalf("got %+v, want request %d", c, code)
	}

	return c
}

func (s *side) send(t *testing.T, c *remoting.Command) {
	t.Helper()

	frame, err := remoting.AppendFrame(nil, c)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := s.Write(frame); err != nil {
		t.Fatal(err)
	}
}

// answer answers a request with a code, and says in the body what was asked.
func (s *side) answer(t *testing.T, request *remoting.Command, code int) {
	t.Helper()

	s.send(t, &remoting.Command{
		Code: code, Language: "JAVA", Opaque: request.Opaque, Flag: 1, Remark: "as told", Body: []byte(request.Ext["n"]),
	})
}

// gone waits until the client has closed the connection.
func (s *side) gone(t *testing.T) {
	t.Helper()

	if c, err := remoting.ReadFrame(s); err == nil {
		t.Fatalf("got %+v on a connection that should be closed", c)
	}
}

func newClient(t *testing.T, o remoting.Options) *remoting.Client {
	t.Helper()

	client := remoting.NewClient(o)
	t.Cleanup(client.Close)

	return client
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)

	return ctx
}

// ask is a request that names itself.
func ask(code int, n string) *remoting.Command {
	return &remoting.Command{Code: code, Ext: map[string]string{"n": n}}
}

// result is how a call went.
type result struct {
	response *remoting.Command
	err      error
}

// begin makes a call in the background.
func begin(ctx context.Context, client *remoting.Client, addr string, request *remoting.Command, accept ...int) <-chan result {
	done := make(chan result, 1)

	go func() {
		response, err := client.Call(ctx, addr, request, accept...)
		done <- result{response, err}
	}()

	return done
}

// wait returns how a call went.
func wait(t *testing.T, done <-chan result) result {
	t.Helper()

	select {
	case r := <-done:
		return r
	case <-time.After(patience):
		t.Fatal("the call does not end")

		return result{}
	}
}

// answered waits for a call and checks that it got the answer to its own request.
func answered(t *testing.T, done <-chan result, n string) {
	t.Helper()

	if r := wait(t, done); r.err != nil || string(r.response.Body) != n {
		t.Fatalf("call %q: %+v, %v", n, r.response, r.err)
	}
}
