package routes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// Ask puts a request to the name servers, beginning with the one that answered last, until one says yes. One that says no is
// not the last word: another may know more, for each learns by itself. A deadline of ctx is shared out among them; without
// one each has the client's time for a call.
//
// The error is the first server's that answered at all, [ErrUnreachable] when none did, [ErrNoPermission],
// [consumer.ErrClosed], or why ctx was cancelled.
func (t *Table) Ask(ctx context.Context, request *remoting.Command) (*remoting.Command, error) {
	t.mu.Lock()
	first := t.first
	t.mu.Unlock()

	servers := t.options.NameServers

	var failures []error

	for i := range servers {
		at := (first + i) % len(servers)

		got, err := t.askOne(ctx, servers[at], len(servers)-i, request)
		if err == nil {
			t.mu.Lock()
			t.first = at
			t.mu.Unlock()

			return got, nil
		}

		if errors.Is(err, remoting.ErrClosed) {
			return nil, consumer.ErrClosed
		}

		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, fmt.Errorf("rocketmq: %w", context.Cause(ctx))
		}

		failures = append(failures, err)
	}

	return nil, t.worst(failures)
}

// askOne asks one server, which gets its share of what is left of the deadline.
func (t *Table) askOne(ctx context.Context, addr string, left int, request *remoting.Command) (*remoting.Command, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc

		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}

	return t.options.Client.Call(ctx, addr, request) //nolint:wrapcheck // worst does
}

// worst returns the one error that tells most: an answer before a name server that cannot be reached.
func (t *Table) worst(failures []error) error {
	for _, err := range failures {
		switch Code(err) {
		case -1:
		case remoting.NoPermission:
			return fmt.Errorf("%w to ask the name server: check the credentials: %w", ErrNoPermission, err)
		default:
			return fmt.Errorf("rocketmq: %w", err)
		}
	}

	return fmt.Errorf("%w: no name server answers at %s; is one running there, and TLS the same on both sides? %w",
		ErrUnreachable, strings.Join(t.options.NameServers, ", "), errors.Join(failures...))
}

// Explain completes an [*consumer.UnknownTopicError] with the topics that there are, when the name servers tell. Other errors
// are returned as they are.
func (t *Table) Explain(ctx context.Context, err error) error {
	missing, ok := errors.AsType[*consumer.UnknownTopicError](err)
	if !ok {
		return err
	}

	if names, failed := t.Topics(ctx); failed == nil {
		missing.Known = names
	}

	return missing
}
