package remoting_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

func TestAnswersFindTheirCallsInAnyOrder(t *testing.T) {
	t.Parallel()

	const calls = 200

	seed := rand.Uint64()
	t.Logf("seed %d", seed)

	p := listen(t)
	client := newClient(t, remoting.Options{})
	pending := make([]<-chan result, calls)

	for i := range calls {
		pending[i] = begin(within(t, patience), client, p.addr(), ask(remoting.PullMessage, strconv.Itoa(i)))
	}

	s := p.accept(t)
	requests := make([]*remoting.Command, calls)

	for i := range requests {
		requests[i] = s.request(t, remoting.PullMessage)
		if requests[i].Language != "GO" || requests[i].Version != remoting.Version || requests[i].IsOneway() {
			t.Fatalf("the request says %+v of itself", requests[i])
		}
	}

	rand.New(rand.NewPCG(seed, 0)).Shuffle(calls, func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })

	for _, request := range requests {
		s.answer(t, request, remoting.Success)
	}

	for i, done := range pending {
		answered(t, done, strconv.Itoa(i))
	}
}

func TestOtherCodesThanTheAcceptedAreErrors(t *testing.T) {
	t.Parallel()

	p := listen(t)
	client := newClient(t, remoting.Options{})
	ctx := within(t, patience)

	done := begin(ctx, client, p.addr(), ask(remoting.PullMessage, "accepted"), remoting.PullNotFound)
	s := p.accept(t)
	s.answer(t, s.next(t), remoting.PullNotFound)

	if r := wait(t, done); r.err != nil || r.response.Code != remoting.PullNotFound {
		t.Errorf("an accepted code: %+v, %v", r.response, r.err)
	}

	done = begin(ctx, client, p.addr(), ask(remoting.PullMessage, "refused"), remoting.PullNotFound)
	s.send(t, &remoting.Command{
		Code: remoting.TopicNotExist, Opaque: s.next(t).Opaque, Flag: 1, Remark: "what topic?", Ext: map[string]string{"a": "b"},
	})

	r := wait(t, done)

	refused, ok := errors.AsType[*remoting.ResponseError](r.err)
	if !ok || refused.Code != remoting.TopicNotExist || refused.Request != remoting.PullMessage || refused.Ext["a"] != "b" {
		t.Fatalf("a code that is not accepted: %+v, %v", r.response, r.err)
	}

	for _, want := range []string{p.addr(), "11", "17", "no such topic", "what topic?"} {
		if !strings.Contains(r.err.Error(), want) {
			t.Errorf("the error %q does not say %q", r.err, want)
		}
	}
}

func TestLateAnswersAreDropped(t *testing.T) {
	t.Parallel()

	p := listen(t)
	client := newClient(t, remoting.Options{})

	ctx, cancel := context.WithCancel(t.Context())
	done := begin(ctx, client, p.addr(), ask(remoting.PullMessage, "late"))
	s := p.accept(t)
	late := s.next(t)

	cancel()

	if r := wait(t, done); !errors.Is(r.err, context.Canceled) {
		t.Fatalf("a cancelled call: %v", r.err)
	}

	s.answer(t, late, remoting.Success)
	s.answer(t, late, remoting.Success) // and twice
	s.answer(t, ask(remoting.PullMessage, "nobody asked"), remoting.Success)

	done = begin(within(t, patience), client, p.addr(), ask(remoting.PullMessage, "next"))
	s.answer(t, s.next(t), remoting.Success)
	answered(t, done, "next")
}

func TestRequestsAreSignedAndLeftAlone(t *testing.T) {
	t.Parallel()

	user := remoting.Credentials{AccessKey: "u", SecretKey: "12345678", SecurityToken: "sts"}
	p := listen(t)
	client := newClient(t, remoting.Options{Credentials: user})

	request := ask(remoting.PullMessage, "1")
	request.Body = []byte("body")
	done := begin(within(t, patience), client, p.addr(), request)

	s := p.accept(t)
	got := s.request(t, remoting.PullMessage)
	want := user.Sign(map[string]string{"n": "1"}, []byte("body"))["Signature"]

	if got.Ext["Signature"] != want || got.Ext["AccessKey"] != "u" || got.Ext["SecurityToken"] != "sts" {
		t.Errorf("the request has the fields %v, want the signature %s", got.Ext, want)
	}

	s.answer(t, got, remoting.Success)
	answered(t, done, "1")

	if len(request.Ext) != 1 || request.Opaque != 0 || request.Version != 0 || request.Language != "" {
		t.Errorf("the caller's request was changed to %+v", request)
	}

	if err := client.Oneway(within(t, patience), p.addr(), request); err != nil {
		t.Fatal(err)
	}

	if got := s.request(t, remoting.PullMessage); !got.IsOneway() || got.Ext["Signature"] != want || string(got.Body) != "body" {
		t.Errorf("the one-way request is %+v, want the signature %s", got, want)
	}
}

func TestCallsInFlightAreBounded(t *testing.T) {
	t.Parallel()

	p := listen(t)
	client := newClient(t, remoting.Options{MaxCalls: 2})
	ctx := within(t, patience)

	first := begin(ctx, client, p.addr(), ask(remoting.PullMessage, "1"))
	s := p.accept(t)
	request := s.next(t)
	second := begin(ctx, client, p.addr(), ask(remoting.PullMessage, "2"))
	other := s.next(t)

	if _, err := client.Call(ctx, p.addr(), ask(remoting.PullMessage, "3")); !errors.Is(err, remoting.ErrBusy) {
		t.Fatalf("a third call: %v", err)
	}

	s.answer(t, request, remoting.Success)
	answered(t, first, "1")

	third := begin(ctx, client, p.addr(), ask(remoting.PullMessage, "3"))
	s.answer(t, s.next(t), remoting.Success)
	s.answer(t, other, remoting.Success)
	answered(t, second, "2")
	answered(t, third, "3")
}

func TestARequestThatNoFrameCanCarryLeavesTheConnectionAlone(t *testing.T) {
	t.Parallel()

	p := listen(t)
	client := newClient(t, remoting.Options{MaxCalls: 1})
	ctx := within(t, patience)

	for range 2 { // it must not stay in flight either
		_, err := client.Call(ctx, p.addr(), &remoting.Command{Body: make([]byte, remoting.MaxFrame)})
		if !errors.Is(err, remoting.ErrTooLarge) {
			t.Fatal(err)
		}
	}

	done := begin(ctx, client, p.addr(), ask(remoting.PullMessage, "next"))
	s := p.accept(t)
	s.answer(t, s.next(t), remoting.Success)
	answered(t, done, "next")
}

func TestACallWithoutADeadlineGetsOne(t *testing.T) {
	t.Parallel()

	p := listen(t)
	client := newClient(t, remoting.Options{CallTimeout: 50 * time.Millisecond})
	done := begin(t.Context(), client, p.addr(), ask(remoting.PullMessage, "1"))
	r := wait(t, done)

	late, ok := errors.AsType[*remoting.TimeoutError](r.err)
	if !ok || !errors.Is(r.err, context.DeadlineExceeded) || !late.Sent || late.Request != remoting.PullMessage {
		t.Fatalf("got %+v, %v", r.response, r.err)
	}
}
