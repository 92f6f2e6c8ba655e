package redis_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins/redis"
	"github.com/millrace/millrace/plugins/servertest"
)

func TestALostServerIsFoundAgain(t *testing.T) {
	t.Parallel()

	w := &world{server: servertest.StartRedis(t)}
	sink := w.open(t, map[string]any{"command": "rpush", "key": "l"})

	for n, end := range []func(testing.TB){w.server.Kill, w.server.Stop} {
		if err := sink.Write(t.Context(), pipelinetest.Messages("1")); err != nil {
			t.Fatal(err)
		}

		end(t)

		if err := cause(sink.Write(t.Context(), pipelinetest.Messages("2"))); err == nil || pipeline.IsRejected(err) {
			t.Errorf("without a server: %v", err)
		}

		w.server.Start(t)

		if err := sink.Write(t.Context(), pipelinetest.Messages("3")); err != nil {
			t.Errorf("with the server back: %v", err)
		}

		if got := sink.Meter()["unreachable"]; got != int64(n+1) {
			t.Errorf("%d times without an answer counted, want %d", got, n+1)
		}
	}

	if got := w.list(t, "l"); len(got) != 4 {
		t.Errorf("the list has %q", got)
	}
}

// Lanes write on while the server is killed and started again; what they were told is written must be there.
func TestWhatIsWrittenOutlivesTheServer(t *testing.T) {
	t.Parallel()

	const lanes, kills = 3, 3

	w := &world{server: servertest.StartRedis(t)}
	sink := w.open(t, map[string]any{"command": "xadd", "key": "s", "fields": map[string]any{"n": "body"}})

	var (
		all     sync.WaitGroup
		stop    = make(chan struct{})
		taken   [lanes]map[string]bool
		beat    = make(chan struct{}) // a batch is through
		refused [lanes]error
	)

	for lane := range lanes {
		taken[lane] = make(map[string]bool)

		all.Go(func() {
			for n := 0; ; n += 10 {
				batch := make([]*pipeline.Message, 10)
				for i := range batch {
					batch[i] = pipelinetest.Message(strconv.Itoa(lane*1_000_000 + n + i))
				}

				failed, err := write(t.Context(), sink, batch)
				if err != nil {
					refused[lane] = err
				}

				for i, m := range batch {
					if failed[i] == nil {
						taken[lane][string(m.Body)] = true
					}
				}

				if len(failed) > 0 {
					continue
				}

				select {
				case <-stop:
					return
				case beat <- struct{}{}:
				default: // nobody counts, and nothing waits
				}
			}
		})
	}

	for range kills {
		for range 20 {
			<-beat
		}

		w.server.Kill(t)
		w.server.Start(t)
	}

	for range 20 {
		<-beat
	}

	close(stop)
	all.Wait()

	if err := errors.Join(refused[:]...); err != nil {
		t.Errorf("the server was gone, and messages were rejected: %v", err)
	}

	there := make(map[string]bool)
	for _, entry := range w.stream(t, "s") {
		there[entry[len("n "):]] = true
	}

	for lane := range lanes {
		for n := range taken[lane] {
			if !there[n] {
				t.Errorf("message %s was taken and is not there", n)
			}
		}
	}

	t.Logf("%d entries, counted %v", len(there), sink.Meter())
}

// write returns the errors by message, and one that rejects.
func write(ctx context.Context, sink *redis.Sink, batch []*pipeline.Message) (failed map[int]error, rejection error) {
	err := sink.Write(ctx, batch)
	failures, ok := errors.AsType[*pipeline.BatchError](err)

	if err != nil && !ok {
		failures = &pipeline.BatchError{}
		for i := range batch {
			failures.Fail(i, err)
		}
	}

	if failures == nil {
		failures = &pipeline.BatchError{}
	}

	for _, err := range failures.Failed {
		if pipeline.IsRejected(err) {
			rejection = err
		}
	}

	return failures.Failed, rejection
}

func TestAServerThatCannotIsAskedAgain(t *testing.T) {
	t.Parallel()

	w := &world{server: servertest.StartRedis(t)}
	sink := w.open(t, map[string]any{"command": "rpush", "key": "l"})

	for _, c := range []struct{ do, undo []any }{
		{[]any{"config", "set", "maxmemory", 1}, []any{"config", "set", "maxmemory", 0}},
		{[]any{"replicaof", "127.0.0.1", 1}, []any{"replicaof", "no", "one"}},
		{[]any{"acl", "setuser", "default", "-rpush"}, []any{"acl", "setuser", "default", "+rpush"}},
	} {
		w.do(t, c.do...)

		if err := cause(sink.Write(t.Context(), pipelinetest.Messages("1"))); err == nil || pipeline.IsRejected(err) {
			t.Errorf("%v: %v", c.do, err)
		}

		w.do(t, c.undo...)

		if err := sink.Write(t.Context(), pipelinetest.Messages("1")); err != nil {
			t.Errorf("%v: %v", c.undo, err)
		}
	}

	if got := sink.Meter(); got["unreachable"] != 0 || got["rejected"] != 0 || got["written"] != 3 {
		t.Errorf("counted %v", got)
	}
}
