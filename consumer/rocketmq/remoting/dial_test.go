package remoting_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// pipes is a network in memory for virtual time. Each connection to "dead" takes for ever, each to "refused" fails, and all
// others are served by serve until they end.
type pipes struct {
	serve func(s net.Conn)
	dials atomic.Int32
}

func (p *pipes) dial(ctx context.Context, addr string) (net.Conn, error) {
	p.dials.Add(1)

	switch addr {
	case "dead":
		<-ctx.Done()

		return nil, ctx.Err()
	case "refused":
		return nil, syscall.ECONNREFUSED
	}

	ours, theirs := net.Pipe()

	go func() {
		defer func() { _ = theirs.Close() }()

		p.serve(theirs)
	}()

	return ours, nil
}

// echo answers everything at once.
func echo(s net.Conn) {
	for {
		request, err := remoting.ReadFrame(s)
		if err != nil {
			return
		}

		frame, err := remoting.AppendFrame(nil, &remoting.Command{Opaque: request.Opaque, Flag: 1})
		if err != nil {
			panic(err)
		}

		if _, err := s.Write(frame); err != nil {
			return
		}
	}
}

// silent reads everything and says nothing.
func silent(s net.Conn) { _, _ = io.Copy(io.Discard, s) }

func TestConcurrentCallersShareOneAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{serve: echo}
		client := newClient(t, remoting.Options{Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			<-time.After(time.Second)

			return network.dial(ctx, addr)
		}})
		defer client.Close()

		// The first, who starts the attempt, gives up before it succeeds: that is not the others' failure.
		first := begin(within(t, time.Millisecond), client, "a", ask(remoting.Heartbeat, "1"))
		synctest.Wait()

		var others []<-chan result
		for range 20 {
			others = append(others, begin(within(t, 5*time.Second), client, "a", ask(remoting.Heartbeat, "2")))
		}

		late, ok := errors.AsType[*remoting.TimeoutError]((<-first).err)
		if !ok || late.Sent || late.After != time.Millisecond {
			t.Errorf("the first call: %v", late)
		}

		for _, done := range others {
			if r := <-done; r.err != nil {
				t.Errorf("another call: %v", r.err)
			}
		}

		if n := network.dials.Load(); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
	})
}

func TestADeadAddressBlocksNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{serve: echo}
		client := newClient(t, remoting.Options{Dial: network.dial})
		defer client.Close()

		began := time.Now()
		dead := begin(within(t, time.Minute), client, "dead", ask(remoting.Heartbeat, "1"))
		synctest.Wait()

		if _, err := client.Call(within(t, time.Minute), "alive", ask(remoting.Heartbeat, "2")); err != nil {
			t.Error(err)
		}

		if d := time.Since(began); d != 0 {
			t.Errorf("the call to the other address took %v", d)
		}

		err := (<-dead).err
		if end, ok := errors.AsType[*remoting.ConnectionError](err); !ok || end.Sent || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the call to the dead address: %v", err)
		}

		if d := time.Since(began); d != remoting.DefaultDialTimeout {
			t.Errorf("the attempt took %v", d)
		}
	})
}

func TestAttemptsGrowApart(t *testing.T) {
	t.Parallel()

	hangUp := func(s net.Conn) { _, _ = remoting.ReadFrame(s) }
	fail := func(context.Context, *remoting.Conn) error { return errors.New("not welcome") }

	for name, c := range map[string]struct {
		addr  string
		serve func(net.Conn)
		greet func(context.Context, *remoting.Conn) error
	}{
		"no connection":       {"refused", nil, nil},
		"hangs up at once":    {"a", hangUp, nil},
		"the greeting fails":  {"a", echo, fail},
		"hangs up in between": {"a", func(net.Conn) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				network := &pipes{serve: c.serve}
				client := newClient(t, remoting.Options{Dial: network.dial, Greet: c.greet})
				defer client.Close()

				// A caller that asks every 10 ms for a minute, as a caller that knows no better does.
				for began := time.Now(); time.Since(began) < time.Minute; <-time.After(10 * time.Millisecond) {
					_, err := client.Call(t.Context(), c.addr, ask(remoting.Heartbeat, "1"))
					if _, ok := errors.AsType[*remoting.ConnectionError](err); !ok {
						t.Fatal(err)
					}
				}

				// 100 ms doubled 7 times is 12.7 s, then one every 10 s; jitter halves each at most.
				if n := network.dials.Load(); n < 11 || n > 20 {
					t.Errorf("%d attempts in a minute", n)
				}
			})
		})
	}
}

func TestAConnectionThatWorkedEndsTheBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{serve: func(s net.Conn) {
			request, err := remoting.ReadFrame(s)
			if err != nil {
				return
			}

			frame, _ := remoting.AppendFrame(nil, &remoting.Command{Opaque: request.Opaque, Flag: 1})
			_, _ = s.Write(frame)
		}}
		client := newClient(t, remoting.Options{Dial: network.dial})
		defer client.Close()

		for range 10 { // each on a connection of its own, which ends after the answer
			if _, err := client.Call(t.Context(), "a", ask(remoting.Heartbeat, "1")); err != nil {
				t.Fatal(err)
			}

			synctest.Wait()
		}

		if n := network.dials.Load(); n != 10 {
			t.Errorf("%d connections, want 10", n)
		}
	})
}

func TestGreetingsComeBeforeAnyCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var codes []int

		network := &pipes{serve: func(s net.Conn) {
			for {
				request, err := remoting.ReadFrame(s)
				if err != nil {
					return
				}

				codes = append(codes, request.Code)
				frame, _ := remoting.AppendFrame(nil, &remoting.Command{Opaque: request.Opaque, Flag: 1})
				<-time.After(time.Millisecond)

				_, _ = s.Write(frame)
			}
		}}
		client := newClient(t, remoting.Options{Dial: network.dial, Greet: func(ctx context.Context, conn *remoting.Conn) error {
			_, err := conn.Call(ctx, ask(remoting.Heartbeat, conn.Addr()))

			return err
		}})
		defer client.Close()

		var calls []<-chan result
		for range 3 {
			calls = append(calls, begin(t.Context(), client, "a", ask(remoting.PullMessage, "1")))
		}

		for _, done := range calls {
			if r := <-done; r.err != nil {
				t.Error(r.err)
			}
		}

		synctest.Wait()

		if len(codes) != 4 || codes[0] != remoting.Heartbeat || codes[1] != remoting.PullMessage {
			t.Errorf("the server got the requests %v", codes)
		}
	})
}

func TestAConnectionThatStaysSilentIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{serve: silent}
		client := newClient(t, remoting.Options{Dial: network.dial})
		defer client.Close()

		held := begin(within(t, time.Hour), client, "a", ask(remoting.PullMessage, "held"))
		synctest.Wait()

		for range 10 { // too short to tell anything
			if _, err := client.Call(within(t, time.Millisecond), "a", ask(remoting.Heartbeat, "1")); err == nil {
				t.Fatal("an answer out of nothing")
			}
		}

		for range 2 {
			_, err := client.Call(within(t, 3*time.Second), "a", ask(remoting.Heartbeat, "1"))
			if _, ok := errors.AsType[*remoting.TimeoutError](err); !ok {
				t.Fatal(err)
			}
		}

		select {
		case r := <-held:
			t.Fatalf("given up too early: %v", r.err)
		default:
		}

		_, _ = client.Call(within(t, 3*time.Second), "a", ask(remoting.Heartbeat, "1"))

		lost(t, held, nil)
	})
}

func TestAServerThatDoesNotReadIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		network := &pipes{serve: func(net.Conn) { <-block }}
		client := newClient(t, remoting.Options{Dial: network.dial})

		defer client.Close()
		defer close(block)

		began := time.Now()
		first := begin(within(t, time.Hour), client, "a", ask(remoting.PullMessage, "1"))
		synctest.Wait()

		_, err := client.Call(within(t, time.Second), "a", ask(remoting.PullMessage, "2"))
		if late, ok := errors.AsType[*remoting.TimeoutError](err); !ok || late.Sent || late.After != time.Second {
			t.Errorf("a call behind one that cannot be written: %v", err)
		}

		lost(t, first, nil)

		if d := time.Since(began); d < 5*time.Second || d > 30*time.Second {
			t.Errorf("given up after %v", d)
		}
	})
}
