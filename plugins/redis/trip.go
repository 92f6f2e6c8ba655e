package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/internal/value"
)

// trip is one round trip.
type trip struct {
	// commands are those of the messages of a batch; nil for one that makes none.
	commands []*redis.Cmd
}

// send begins a round trip. The channel is closed at its end, when the commands know what became of them.
func (s *Sink) send(ctx context.Context, w *trip) (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.client == nil {
		return nil, errClosed
	}

	pipe := s.client.Pipeline()

	for _, command := range w.commands {
		if command == nil {
			continue
		}

		if err := pipe.Process(ctx, command); err != nil {
			return nil, s.place("", err)
		}
	}

	s.batches.Add(1)

	done := make(chan struct{})

	s.calls.Go(func() {
		defer close(done)

		_, _ = pipe.Exec(ctx) // each command has its own error
	})

	return done, nil
}

// command is what is done with a message.
func (s *Sink) command(ctx context.Context, m *pipeline.Message) (*redis.Cmd, error) {
	r := value.Of(m)

	name, err := s.options.Key.Text(r, nil)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}

	if name == "" {
		return nil, fmt.Errorf("key: %s makes an empty name", s.options.Key)
	}

	args := make([]any, 0, 6+2*len(s.fields))
	args = append(args, s.options.Command.String(), name)

	switch s.options.Command {
	case RPush, LPush:
		text, err := r.Text(s.options.Value)
		if err != nil {
			return nil, fmt.Errorf("value: %w", err)
		}

		return redis.NewCmd(ctx, append(args, text)...), nil
	case XAdd:
		if s.options.MaxLen > 0 {
			args = append(args, "maxlen", "~", s.options.MaxLen)
		}

		args = append(args, "*")
	case HSet, none:
	}

	before := len(args)

	if args, err = s.pairs(r, args); err != nil {
		return nil, err
	}

	if len(args) == before {
		return nil, errors.New("fields: the message has none of them")
	}

	return redis.NewCmd(ctx, args...), nil
}

// pairs appends the fields that a message has, with their values.
func (s *Sink) pairs(r *value.Reader, args []any) ([]any, error) {
	for _, f := range s.fields {
		text, err := r.Text(f.value)
		if errors.Is(err, value.ErrMissing) {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("fields: %s: %w", f.name, err)
		}

		name, err := f.name.Text(r, nil)
		if err != nil {
			return nil, fmt.Errorf("fields: %s: %w", f.name, err)
		}

		args = append(args, name, text)
	}

	return args, nil
}

// key is the key of a command.
func key(command *redis.Cmd) string {
	name, _ := command.Args()[1].(string)

	return name
}

// isAnswer reports whether an error is what the server has said, in contrast to a server that says nothing.
func isAnswer(err error) bool {
	_, ok := errors.AsType[redis.Error](err)

	return ok
}

// isData reports whether a message is at fault: its key holds something else, or it is larger than the server stores. All else
// that a server says is about the server: that it is full, loading, a replica, or does not know the user or the command.
func isData(err error) bool {
	if !isAnswer(err) {
		return false
	}

	text := err.Error()

	return strings.HasPrefix(text, "WRONGTYPE") ||
		strings.HasPrefix(text, "ERR") && (strings.Contains(text, "too large") || strings.Contains(text, "exceeds maximum"))
}

// inTime names the deadline where that was the reason: a connection may notice that it has passed before its context does.
func inTime(ctx context.Context, err error) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}

	return err
}
