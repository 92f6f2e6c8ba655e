package remoting_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// lost checks that a call failed since its connection ended after the request was sent.
func lost(t *testing.T, done <-chan result, cause error) {
	t.Helper()

	r := wait(t, done)

	end, ok := errors.AsType[*remoting.ConnectionError](r.err)
	if !ok || !end.Sent || cause != nil && !errors.Is(r.err, cause) {
		t.Fatalf("got %+v, %v; want a lost connection with %v", r.response, r.err, cause)
	}
}

func TestALostConnectionFailsItsCallsAndTheNextCallGetsANewOne(t *testing.T) {
	t.Parallel()

	p := listen(t)
	client := newClient(t, remoting.Options{})
	ctx := within(t, patience)

	for _, hangUp := range []func(s *side){
		func(s *side) { _ = s.Close() },
		func(s *side) { _ = s.Conn.(*net.TCPConn).SetLinger(0); _ = s.Close() }, // a reset
		func(s *side) { _, _ = s.Write([]byte{0, 0, 0, 50, 0}); _ = s.Close() }, // within a frame
	} {
		first := begin(ctx, client, p.addr(), ask(remoting.PullMessage, "1"))
		s := p.accept(t)
		s.answer(t, s.next(t), remoting.Success)
		answered(t, first, "1")

		second := begin(ctx, client, p.addr(), ask(remoting.PullMessage, "2"))
		third := begin(ctx, client, p.addr(), ask(remoting.PullMessage, "3"))
		s.next(t)
		s.next(t)
		hangUp(s)
		lost(t, second, nil)
		lost(t, third, nil)
	}
}

func TestABrokenFrameEndsItsConnectionAndNothingElse(t *testing.T) {
	t.Parallel()

	p, other := listen(t), listen(t)
	client := newClient(t, remoting.Options{})
	ctx := within(t, patience)

	held := begin(ctx, client, other.addr(), ask(remoting.PullMessage, "held"))
	o := other.accept(t)
	heldRequest := o.next(t)

	for _, bytes := range [][]byte{
		{0, 0, 0, 1, 0}, {0x7f, 0xff, 0xff, 0xff}, framed(7, nil, nil), framed(0, []byte("{"), nil), framed(1, []byte{1}, nil),
	} {
		first := begin(ctx, client, p.addr(), ask(remoting.PullMessage, "1"))
		s := p.accept(t)
		s.answer(t, s.next(t), remoting.Success)
		answered(t, first, "1")

		second := begin(ctx, client, p.addr(), ask(remoting.PullMessage, "2"))
		s.next(t)

		if _, err := s.Write(bytes); err != nil {
			t.Fatal(err)
		}

		lost(t, second, remoting.ErrFrame)
		s.gone(t)
	}

	o.answer(t, heldRequest, remoting.Success)
	answered(t, held, "held")
}

func TestAServerThatGoesAwayFinishesItsCallsAndIsAskedAnew(t *testing.T) {
	t.Parallel()

	greeted := make(chan string, 10)
	p := listen(t)
	client := newClient(t, remoting.Options{Greet: func(_ context.Context, conn *remoting.Conn) error {
		greeted <- conn.Addr()

		return nil
	}})
	ctx := within(t, patience)

	held := begin(ctx, client, p.addr(), ask(remoting.PullMessage, "held"))
	before := p.accept(t)
	heldRequest := before.next(t)

	moved := begin(ctx, client, p.addr(), ask(remoting.SendMessage, "moved"))
	before.answer(t, before.request(t, remoting.SendMessage), remoting.GoAway)

	after := p.accept(t)
	after.answer(t, after.request(t, remoting.SendMessage), remoting.Success)
	answered(t, moved, "moved")

	next := begin(ctx, client, p.addr(), ask(remoting.SendMessage, "next"))
	after.answer(t, after.request(t, remoting.SendMessage), remoting.Success)
	answered(t, next, "next")

	before.answer(t, heldRequest, remoting.Success)
	answered(t, held, "held")
	before.gone(t)

	if len(greeted) != 2 {
		t.Errorf("%d greetings, want one a connection", len(greeted))
	}
}

func TestAServerThatOnlyGoesAwayIsNotAskedForEver(t *testing.T) {
	t.Parallel()

	p := listen(t)
	client := newClient(t, remoting.Options{})
	done := begin(within(t, patience), client, p.addr(), ask(remoting.SendMessage, "1"), remoting.GoAway)

	for range 2 {
		s := p.accept(t)
		s.answer(t, s.next(t), remoting.GoAway)
		s.gone(t)
	}

	r := wait(t, done)
	if refused, ok := errors.AsType[*remoting.ResponseError](r.err); !ok || refused.Code != remoting.GoAway {
		t.Fatalf("got %+v, %v", r.response, r.err)
	}
}

func TestCloseFailsWhatIsUnderWayAndWaits(t *testing.T) {
	t.Parallel()

	p := listen(t)
	handling, handled := make(chan struct{}), false
	client := newClient(t, remoting.Options{Handle: func(ctx context.Context, _ string, _ *remoting.Command) *remoting.Command {
		close(handling)
		<-ctx.Done()

		handled = true

		return nil
	}})

	ctx := within(t, patience)
	done := begin(ctx, client, p.addr(), ask(remoting.PullMessage, "1"))
	s := p.accept(t)
	s.next(t)
	s.send(t, ask(remoting.GetRunningInfo, ""))
	<-handling

	client.Close()

	if !handled {
		t.Error("Close did not wait for the handler")
	}

	if r := wait(t, done); !errors.Is(r.err, remoting.ErrClosed) {
		t.Errorf("the call under way: %v", r.err)
	}

	if _, err := client.Call(ctx, p.addr(), ask(remoting.PullMessage, "2")); !errors.Is(err, remoting.ErrClosed) {
		t.Errorf("a call after Close: %v", err)
	}

	if err := client.Oneway(ctx, p.addr(), ask(remoting.PullMessage, "2")); !errors.Is(err, remoting.ErrClosed) {
		t.Errorf("a one-way call after Close: %v", err)
	}

	s.gone(t)
	client.Close()
}

func TestCloseEndsAnAttemptToConnect(t *testing.T) {
	t.Parallel()

	dialling := make(chan struct{})
	client := newClient(t, remoting.Options{DialTimeout: time.Hour, Dial: func(ctx context.Context, _ string) (net.Conn, error) {
		close(dialling)
		<-ctx.Done()

		return nil, ctx.Err()
	}})

	done := begin(within(t, time.Hour), client, "nowhere:1", ask(remoting.PullMessage, "1"))
	<-dialling
	client.Close()

	if r := wait(t, done); !errors.Is(r.err, remoting.ErrClosed) {
		t.Errorf("the call under way: %v", r.err)
	}
}
