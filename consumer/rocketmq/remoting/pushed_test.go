package remoting_test

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// opened returns the server's side of a connection that is in use.
func opened(t *testing.T, p *peer, client *remoting.Client) *side {
	t.Helper()

	done := begin(within(t, patience), client, p.addr(), ask(remoting.Heartbeat, "open"))
	s := p.accept(t)
	s.answer(t, s.next(t), remoting.Success)
	answered(t, done, "open")

	return s
}

func TestRequestsOfAServerAreAnswered(t *testing.T) {
	t.Parallel()

	p := listen(t)
	notified := make(chan *remoting.Command, 1)
	client := newClient(t, remoting.Options{Handle: func(_ context.Context, addr string, r *remoting.Command) *remoting.Command {
		switch r.Code {
		case remoting.GetRunningInfo:
			return &remoting.Command{Remark: addr, Ext: map[string]string{"for": r.Ext["n"]}, Body: r.Body}
		case remoting.GetClientStatus:
			panic("a bug \xff")
		case remoting.ConsumeDirectly:
			return &remoting.Command{Body: make([]byte, remoting.MaxFrame)}
		case remoting.NotifyConsumerChange:
			notified <- r

			return &remoting.Command{Remark: "must not be sent"}
		default:
			return nil
		}
	}})
	s := opened(t, p, client)

	s.send(t, &remoting.Command{Code: remoting.NotifyConsumerChange, Flag: 2, Opaque: 1, Ext: map[string]string{"consumerGroup": "G"}})

	if got := <-notified; got.Ext["consumerGroup"] != "G" {
		t.Errorf("got the notification %+v", got)
	}

	s.send(t, &remoting.Command{Code: remoting.ConsumeDirectly, Opaque: 2}) // whose answer cannot be sent
	s.send(t, &remoting.Command{Code: remoting.GetRunningInfo, Opaque: -7, Ext: map[string]string{"n": "1"}, Body: []byte("body")})

	got := s.next(t)
	if !got.IsResponse() || got.Opaque != -7 || got.Code != remoting.Success || got.Remark != p.addr() ||
		got.Ext["for"] != "1" || string(got.Body) != "body" || got.Language != "GO" {
		t.Errorf("got the answer %+v", got)
	}

	s.send(t, &remoting.Command{Code: remoting.GetClientStatus, Opaque: 8})

	if got := s.next(t); !got.IsResponse() || got.Code != remoting.SystemError || !strings.Contains(got.Remark, "a bug") {
		t.Errorf("got the answer %+v to a request whose handler panics", got)
	}

	s.send(t, &remoting.Command{Code: 9999, Opaque: 9})

	if got := s.next(t); !got.IsResponse() || got.Code != remoting.NotSupported || !strings.Contains(got.Remark, "9999") {
		t.Errorf("got the answer %+v to a request that nobody handles", got)
	}
}

func TestAFloodOfRequestsBlocksNoAnswer(t *testing.T) {
	t.Parallel()

	const flood, most = 200, 64

	seen, logs := observer.New(zap.WarnLevel)
	started, release := make(chan struct{}, flood), make(chan struct{})
	p := listen(t)
	client := newClient(t, remoting.Options{
		Log: zap.New(seen),
		Handle: func(context.Context, string, *remoting.Command) *remoting.Command {
			started <- struct{}{}
			<-release

			return nil
		},
	})
	s := opened(t, p, client)

	for range flood {
		s.send(t, &remoting.Command{Code: remoting.NotifyConsumerChange, Flag: 2})
	}

	done := begin(within(t, patience), client, p.addr(), ask(remoting.PullMessage, "1"))
	s.answer(t, s.next(t), remoting.Success)
	answered(t, done, "1")

	for range most {
		<-started
	}

	if dropped := logs.Len(); dropped != flood-most || len(started) != 0 {
		t.Errorf("%d requests dropped and logged, %d more being handled; want %d, 0", dropped, len(started), flood-most)
	}

	close(release)
}
