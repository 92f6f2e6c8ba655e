// Package redis is the sink that writes messages into streams, lists and hashes of a Redis server.
package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/internal/value"
)

// Sink writes messages to Redis. It is safe for concurrent use.
type Sink struct {
	options Options
	config  *redis.Options
	fields  []field

	mu     sync.Mutex // guards client, and calls against being waited for while they begin
	client *redis.Client
	calls  sync.WaitGroup // round trips under way, also those that nobody waits for any more

	written, batches, rejected, unreachable atomic.Int64
}

var (
	_ pipeline.Sink   = (*Sink)(nil)
	_ pipeline.Opener = (*Sink)(nil)
	_ pipeline.Meter  = (*Sink)(nil)
)

// errClosed is what Write fails with before Open and after Close.
var errClosed = errors.New("redis: the sink is not open")

// New returns a sink that is not open yet. It reads the files that its TLS options name.
func New(o Options) (*Sink, error) {
	if o.Timeout == 0 {
		o.Timeout = plugins.Duration(10 * time.Second)
	}

	if o.Connections == 0 {
		o.Connections = 4
	}

	if o.Value.IsZero() && (o.Command == RPush || o.Command == LPush) {
		o.Value = body()
	}

	if len(o.Fields) == 0 && o.Command == XAdd {
		o.Fields = map[string]value.Value{"body": body()}
	}

	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}

	config, err := o.client()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}

	fields, err := o.fields()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}

	return &Sink{options: o, config: config, fields: fields}, nil
}

// body is the body of a message as it is.
func body() value.Value {
	v, _ := value.Parse("text") // a name that there is

	return v
}

// Open connects, so that a wrong address or password is noticed now.
func (s *Sink) Open(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.client != nil {
		return errors.New("redis: the sink is open already")
	}

	config := *s.config // the client fills in what is missing
	client := redis.NewClient(&config)

	if err := client.Ping(ctx).Err(); err != nil {
		return errors.Join(s.place("", err), client.Close())
	}

	s.client = client

	return nil
}

// Write does a command for each message, in one round trip. What the server refuses for its data fails alone, in a
// [*pipeline.BatchError] that rejects it; after any other error of a message, it is unknown whether the server has it.
func (s *Sink) Write(ctx context.Context, batch []*pipeline.Message) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}

	var failures pipeline.BatchError

	w := trip{commands: make([]*redis.Cmd, len(batch))}

	for i, m := range batch {
		command, err := s.command(ctx, m)
		if err != nil {
			s.rejected.Add(1)
			failures.Fail(i, pipeline.Reject(fmt.Errorf("redis: %w", err)))

			continue
		}

		w.commands[i] = command
	}

	if len(failures.Failed) == len(batch) {
		return failures.Err()
	}

	done, err := s.send(ctx, &w)
	if err != nil {
		return err
	}

	select {
	case <-done:
	case <-ctx.Done(): // the client looks at deadlines only
		return fmt.Errorf("redis: waiting for %s: %w", s.config.Addr, ctx.Err())
	}

	s.judge(ctx, &w, &failures)

	return failures.Err()
}

// judge says what became of each command of a trip.
func (s *Sink) judge(ctx context.Context, w *trip, failures *pipeline.BatchError) {
	lost := false

	for i, command := range w.commands {
		if command == nil {
			continue
		}

		err := command.Err()

		switch {
		case err == nil:
			s.written.Add(1)
		case isData(err):
			s.rejected.Add(1)
			failures.Fail(i, pipeline.Reject(s.place(key(command), err)))
		case isAnswer(err):
			failures.Fail(i, s.place(key(command), err))
		default:
			lost = true

			failures.Fail(i, s.place(key(command), inTime(ctx, err)))
		}
	}

	if lost {
		s.unreachable.Add(1)
	}
}

// Close disconnects. Closing twice, or what was never opened, does nothing.
func (s *Sink) Close() error {
	s.mu.Lock()
	client := s.client
	s.client = nil
	s.mu.Unlock()

	if client == nil {
		return nil
	}

	err := client.Close()

	s.calls.Wait() // what nobody waits for any more ends with its connection

	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}

	return nil
}

// Meter returns what was written.
func (s *Sink) Meter() map[string]int64 {
	return map[string]int64{
		"written": s.written.Load(), "batches": s.batches.Load(), "rejected": s.rejected.Load(),
		"unreachable": s.unreachable.Load(),
	}
}

// place says where an error happened. The password is in none, whatever the server puts there.
func (s *Sink) place(key string, err error) error {
	where := fmt.Sprintf("redis: %s/%d", s.config.Addr, s.config.DB)
	if key != "" {
		where += fmt.Sprintf(", %s %.100q", s.options.Command, key)
	}

	if p := s.config.Password; p != "" && strings.Contains(where+err.Error(), p) {
		return errors.New(strings.ReplaceAll(where+": "+err.Error(), p, "***"))
	}

	return fmt.Errorf("%s: %w", where, err)
}

// Quiet keeps the library that talks to the servers from writing to the standard error, in the whole process; what it has to
// say is in the errors too. It is for programs to call at their start, not for libraries.
func Quiet() { redis.SetLogger(&logging.VoidLogger{}) }
