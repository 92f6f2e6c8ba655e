package producer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

const (
	firstPause = 10 * time.Millisecond
	maxPause   = time.Second
)

// check returns an error for a topic that cannot be sent to.
func (p *Producer) check(topic string) error {
	if err := routes.CheckTopic(p.options.Namespace.Wrap(topic)); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}

	return nil
}

// about names the topic in an error.
func (p *Producer) about(topic string, err error) error {
	return fmt.Errorf("%w (topic %q)", err, topic)
}

// deliver sends letters in one request, all of one queue: several only when none of them has to be alone.
func (p *Producer) deliver(ctx context.Context, topic string, letters []*letter) ([]Sent, error) {
	request, err := p.request(topic, letters)
	if err != nil {
		return nil, p.about(topic, err)
	}

	failed := map[string]bool{}

	for attempt := 1; ; attempt++ {
		q, addr, err := p.place(ctx, topic, letters[0].key, failed)
		if err != nil {
			return nil, err
		}

		sent, err := p.try(ctx, addr, q, request, letters)
		if err == nil {
			return sent, nil
		}

		if ctx.Err() != nil {
			return nil, fmt.Errorf("rocketmq: send to topic %q at broker %s: %w: %w", topic, q.Broker, context.Cause(ctx), err)
		}

		if attempt >= p.options.Attempts || !retriable(err) {
			return nil, p.routes.Explain(ctx, explain(q, attempt, err)) //nolint:wrapcheck // explain's words
		}

		failed[q.Broker] = true

		if !isBusy(err) {
			p.chooser.avoid(q.Broker)
			_, _ = p.routes.Refresh(ctx, topic) // without a new route the old one has to do
		}

		if err := pause(ctx, attempt); err != nil {
			return nil, fmt.Errorf("rocketmq: send to topic %q: %w", topic, err)
		}
	}
}

// place decides where to send. A route without a queue to write to is asked for once more.
func (p *Producer) place(
	ctx context.Context, topic, key string, failed map[string]bool,
) (q pipeline.Queue, addr string, err error) {
	for _, find := range []func(context.Context, string) (*routes.Route, error){p.route, p.routes.Refresh} {
		route, err := find(ctx, topic)
		if err != nil {
			return q, "", err
		}

		if q, ok := p.chooser.choose(route, key, failed); ok {
			return q, route.Master(q.Broker), nil
		}
	}

	return q, "", fmt.Errorf("%w: %q has no queue that is for writing at a broker with a master: is its permission 6 "+
		"(mqadmin updateTopic -p 6), and a master up?", ErrNotWritable, topic)
}

// route returns the route of a topic. Name servers that cannot be reached are asked as often as a message is sent.
func (p *Producer) route(ctx context.Context, topic string) (*routes.Route, error) {
	for attempt := 1; ; attempt++ {
		route, err := p.routes.Of(ctx, topic)
		if err == nil {
			return route, nil
		}

		again := errors.Is(err, routes.ErrUnreachable) || routes.Code(err) == remoting.GoAway
		if !again || attempt >= p.options.Attempts || pause(ctx, attempt) != nil {
			return nil, p.routes.Explain(ctx, err) //nolint:wrapcheck // it names the topic or the name server
		}
	}
}

// request returns what is the same in every attempt.
func (p *Producer) request(topic string, letters []*letter) (*remoting.Command, error) {
	first := letters[0]
	r := &remoting.Command{Code: remoting.SendMessageV2, Body: first.body, Ext: map[string]string{
		"a": p.options.Namespace.Wrap(p.options.Group), "b": p.options.Namespace.Wrap(topic), "c": "TBW102", "d": "4",
		"f": strconv.Itoa(int(first.sysFlag)), "g": strconv.FormatInt(first.born, 10), "h": strconv.Itoa(int(first.flag)),
		"i": string(first.props), "j": "0", "k": "false", "m": "false",
	}}

	if len(letters) == 1 {
		return r, nil
	}

	// A batch has no properties of its own: brokers would append them to those of each message.
	r.Code, r.Body, r.Ext["f"], r.Ext["h"], r.Ext["i"], r.Ext["m"] = remoting.SendMessageBatch, nil, "0", "0", "", "true"

	for _, l := range letters {
		var err error
		if r.Body, err = record.AppendEntry(r.Body, record.Entry{Flag: l.flag, Body: l.body, Props: l.props}); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTooLarge, err)
		}
	}

	return r, nil
}

// try makes one attempt.
func (p *Producer) try(
	ctx context.Context, addr string, q pipeline.Queue, same *remoting.Command, letters []*letter,
) ([]Sent, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.Remoting.CallTimeout)
	defer cancel()

	request := &remoting.Command{Code: same.Code, Body: same.Body, Ext: map[string]string{"e": strconv.Itoa(q.ID), "n": q.Broker}}
	maps.Copy(request.Ext, same.Ext)

	answer, err := p.client.Call(ctx, addr, request,
		remoting.FlushDiskTimeout, remoting.SlaveNotAvailable, remoting.FlushSlaveTimeout) // stored all the same
	if err != nil {
		return nil, err //nolint:wrapcheck // explain does
	}

	at, err := strconv.ParseInt(answer.Ext["queueOffset"], 10, 64)
	if err != nil {
		at = -1 // stored is stored
	}

	sent := make([]Sent, len(letters))
	for i, l := range letters {
		sent[i] = Sent{Queue: q, Offset: pipeline.Offset(at), ID: l.id, Durable: answer.Code == remoting.Success}
		if at >= 0 {
			at++
		}
	}

	return sent, nil
}

// pause waits a little, longer after each attempt.
func pause(ctx context.Context, attempt int) error {
	timer := time.NewTimer(min(firstPause<<min(2*(attempt-1), 16), maxPause))
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
