// Package exec runs programs in other languages as stages. docs/exec.md describes how it talks to them.
package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
)

// worker is a program that is started again when it ends.
type worker struct {
	options Options
	log     *zap.Logger
	counts  counts

	mu      sync.Mutex // guards what is below; held while the program works
	writer  *writer
	process *process
	closed  bool
	number  uint64
	// failures in a row, and when the program may be started again.
	failures int
	notYet   time.Time
	// careful is how many messages are sent one by one, since the program has failed on a batch.
	careful int
}

// counts is what the plugin counts.
type counts struct{ messages, made, refused, starts, failures atomic.Int64 }

var errClosed = errors.New("the stage is closed")

func newWorker(o Options, log *zap.Logger) (*worker, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("exec: %w", err)
	}

	if log == nil {
		log = zap.NewNop()
	}

	return &worker{options: withDefaults(o), log: log, writer: newWriter()}, nil
}

// Open starts the program, so that one that cannot be started stops the job's start.
func (w *worker) Open(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	if err := w.ready(ctx); err != nil {
		return fmt.Errorf("exec: %w", err)
	}

	return nil
}

// Close lets the program end, and kills it with all that it has started when it does not. It waits for a batch that is
// under way.
func (w *worker) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.closed = true

	if w.process != nil {
		w.process.leave()
		w.process = nil
	}

	return nil
}

// Meter returns what was sent, made and refused, and how often the program was started and failed.
func (w *worker) Meter() map[string]int64 {
	c := &w.counts

	return map[string]int64{
		"messages": c.messages.Load(), "made": c.made.Load(), "refused": c.refused.Load(),
		"starts": c.starts.Load(), "failures": c.failures.Load(),
	}
}

// ready starts the program if it does not run. It waits as long as it must after failures.
func (w *worker) ready(ctx context.Context) error {
	if w.closed {
		return errClosed
	}

	if w.process != nil {
		return nil
	}

	if wait := time.Until(w.notYet); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()

		select {
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("the program is started again in %s: %w", wait.Round(time.Millisecond), ctx.Err())
		}
	}

	if err := ctx.Err(); err != nil {
		return err
	}

	w.counts.starts.Add(1)

	p, err := run(ctx, &w.options, w.writer, w.log)
	if err != nil {
		w.putOff()

		return err
	}

	w.process = p

	return nil
}

// putOff puts off the next start.
func (w *worker) putOff() {
	const most = 100

	wait := time.Duration(w.options.Restart) * time.Duration(min(1<<min(w.failures, most), most))
	w.failures++
	w.counts.failures.Add(1)
	w.notYet = time.Now().Add(wait)
}

// send has the program work at the first messages of the batch, as many as fit into a frame, and returns their results, one
// for each. It never returns none.
func (w *worker) send(ctx context.Context, batch []*pipeline.Message) []result {
	limit := int(w.options.Frame)

	if err := w.ready(ctx); err != nil {
		return failed(len(batch), err)
	}

	if w.careful > 0 {
		batch = batch[:1]
	}

	w.number++

	frame, n, err := w.writer.batch(w.number, batch, limit)
	if err != nil {
		return failed(len(batch), err)
	}

	if n == 0 {
		err := fmt.Errorf("the message is larger than a frame of %d bytes; the option frame allows more", limit)

		return failed(1, pipeline.Reject(err))
	}

	payload, err := w.process.exchange(ctx, frame, limit)

	var results []result
	if err == nil {
		results, err = readReply(payload, w.number, batch[:n], w.options.Most)
	}

	if err != nil {
		return failed(n, w.broken(n, err))
	}

	w.failures = 0
	w.careful = max(0, w.careful-n)
	w.counts.messages.Add(int64(n))

	for _, r := range results {
		if r.err != nil {
			w.counts.refused.Add(1)
		}
	}

	return results
}

// failed returns the same result n times.
func failed(n int, err error) []result { return slices.Repeat([]result{{err: err}}, n) }

// broken gives the program up. When it had more than one message, they are sent one by one when they come back; others come
// between them.
func (w *worker) broken(n int, err error) error {
	const share = 4 // one message in so many is one that comes back; a guess

	err = w.process.end(err)
	w.process = nil
	w.putOff()

	if n > 1 {
		w.careful = max(w.careful, share*n)
	}

	w.log.Warn("the program failed", zap.Int("messages", n), zap.Error(err))

	return err
}
