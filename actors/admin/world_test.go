package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// world is a broker in memory with the topic "in", jobs on it, and an endpoint that is asked without a network.
type world struct {
	*consumertest.Broker

	t    *testing.T
	jobs admin.Jobs
}

// setup makes a world; it must be called inside of a bubble.
func setup(t *testing.T, queues int) *world {
	t.Helper()

	w := &world{Broker: consumertest.NewBroker(consumertest.Config{}), t: t}
	w.CreateTopic("in", queues)
	t.Cleanup(func() {
		w.Close()
		pass(5 * time.Second) // protoactor counts undeliverable messages on a goroutine that lives for a second
	})

	return w
}

// queue is queue number id of the topic.
func queue(id int) pipeline.Queue { return pipeline.Queue{Topic: "in", ID: id} }

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// publish stores messages m0 to m<n-1>, each with a key of its own.
func (w *world) publish(n int) {
	w.t.Helper()

	for i := range n {
		m := &pipeline.Message{ID: fmt.Sprintf("m%d", i), Key: fmt.Sprintf("k%d", i), Body: fmt.Append(nil, i)}
		if err := w.Publish(w.t.Context(), "in", []*pipeline.Message{m}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// job is a job over the topic in the group "job"; channels without an end get a sink.
func job(channels ...pipeline.Channel) pipeline.Job {
	for i := range channels {
		if channels[i].Timeout == 0 {
			channels[i].Timeout = time.Hour
		}

		if channels[i].Sink == nil && channels[i].Routes == nil {
			channels[i].Sink = pipeline.SinkFunc(func(context.Context, []*pipeline.Message) error { return nil })
		}
	}

	return pipeline.Job{
		Name: "job", Source: pipeline.Source{Topics: []string{"in"}, Group: "job", Start: pipeline.First}, Channels: channels,
		Retry: pipeline.RetryPolicy{Attempts: 5, Delays: []time.Duration{time.Second}},
	}
}

// run starts a job, which is stopped at the end of the test.
func (w *world) run(broker consumer.Broker, j pipeline.Job, opts actors.Options) *actors.Running {
	w.t.Helper()

	r, err := actors.Start(j, broker, opts)
	if err != nil {
		w.t.Fatal(err)
	}

	w.t.Cleanup(func() { r.Drain(-1) })
	w.jobs.Add(r)

	return r
}

// ask sends a request to the endpoint and reads its answer.
func (w *world) ask(o admin.Options, method, path, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	w.t.Helper()

	o.Jobs = &w.jobs
	request := httptest.NewRequestWithContext(w.t.Context(), method, "http://127.0.0.1:7411"+path, strings.NewReader(body))

	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}

	if change != nil {
		change(request)
	}

	recorder := httptest.NewRecorder()
	admin.NewHandler(o).ServeHTTP(recorder, request)

	return recorder
}

// why asks the endpoint why things are as they are.
func (w *world) why() admin.Answers {
	w.t.Helper()

	recorder := w.ask(admin.Options{}, http.MethodGet, "/api/v1/why", "", nil)
	if recorder.Code != http.StatusOK {
		w.t.Fatalf("%d: %s", recorder.Code, recorder.Body)
	}

	var a admin.Answers

	decoder := json.NewDecoder(bytes.NewReader(recorder.Body.Bytes()))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(&a); err != nil {
		w.t.Fatal(err)
	}

	return a
}

// gate returns a stage that holds the messages that pick picks until open is closed; with heed also until the call's
// context ends.
func gate(pick func(*pipeline.Message) bool, open <-chan struct{}, heed bool) pipeline.Stage {
	return pipeline.Func("gate", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		if !pick(m) {
			return emit(m)
		}

		ended := ctx.Done()
		if !heed {
			ended = nil
		}

		select {
		case <-open:
			return emit(m)
		case <-ended:
			return context.Cause(ctx)
		}
	})
}

// failing returns a stage that fails on the messages that pick picks.
func failing(pick func(*pipeline.Message) bool, err error) pipeline.Stage {
	return pipeline.Func("picky", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		if pick(m) {
			return err
		}

		return emit(m)
	})
}

func named(id string) func(*pipeline.Message) bool {
	return func(m *pipeline.Message) bool { return m.ID == id }
}

// refuse are faults that refuse some calls.
func refuse(ops ...consumertest.Op) consumertest.Faults {
	rates := make(map[consumertest.Op]float64)
	for _, op := range ops {
		rates[op] = 1
	}

	return consumertest.Faults{Refuse: rates}
}

// silent is a broker that does not answer one kind of question until the asker gives up.
type silent struct {
	consumer.Broker

	// assigned: it tells no change of the first assignment.
	pull, stored, assigned bool
}

type silentMember struct {
	consumer.Member

	of silent
}

func (s silent) Join(ctx context.Context, sub consumer.Subscription) (consumer.Member, error) {
	m, err := s.Broker.Join(ctx, sub)

	return silentMember{Member: m, of: s}, err
}

func (m silentMember) Assigned(ctx context.Context, known uint64) (consumer.Assignment, error) {
	if m.of.assigned && known > 0 {
		<-ctx.Done()

		return consumer.Assignment{}, ctx.Err()
	}

	return m.Member.Assigned(ctx, known)
}

func (m silentMember) Pull(ctx context.Context, l consumer.Lease, from pipeline.Offset, limit consumer.Limit) (consumer.Batch, error) {
	if m.of.pull {
		<-ctx.Done()

		return consumer.Batch{}, ctx.Err()
	}

	return m.Member.Pull(ctx, l, from, limit)
}

func (m silentMember) Stored(ctx context.Context, q pipeline.Queue) (consumer.Checkpoint, error) {
	if m.of.stored {
		<-ctx.Done()

		return consumer.Checkpoint{}, ctx.Err()
	}

	return m.Member.Stored(ctx, q)
}

// slowDoor is a sink that does not open before it may.
type slowDoor struct{ may <-chan struct{} }

func (slowDoor) Write(context.Context, []*pipeline.Message) error { return nil }

func (s slowDoor) Open(context.Context) error {
	<-s.may

	return nil
}

// counter is a transform that counts what passes, under several names.
type counter struct {
	names []string
	n     atomic.Int64
}

func counting(name string, counts ...string) pipeline.Stage {
	return pipeline.Stage{Name: name, New: func() (pipeline.Transform, error) { return &counter{names: counts}, nil }}
}

func (c *counter) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	c.n.Add(1)

	return emit(m)
}

func (c *counter) Meter() map[string]int64 {
	counts := make(map[string]int64)
	for _, name := range c.names {
		counts[name] = c.n.Load()
	}

	return counts
}
