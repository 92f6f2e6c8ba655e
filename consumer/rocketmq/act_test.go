package rocketmq_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
	"github.com/millrace/millrace/pipeline"
)

// Jobs of their own on one real broker, each in a trouble of its own; in the end the books of each balance.
func TestRealBrokerInTrouble(t *testing.T) { //nolint:tparallel // what concerns the broker as a whole has to be alone on it
	t.Parallel()

	cluster := rocketmqtest.Start(t, rocketmqtest.Options{})

	t.Run("side by side", func(t *testing.T) {
		for name, scene := range map[string]struct {
			queues int
			plays  func(*act)
		}{
			"restarts": {1, restartsMakeNoCopies},
			"down":     {2, aSinkThatIsDownBuriesNothing},
			"hung":     {1, aHungStageIsGivenUp},
			"reset":    {1, aResetIsFollowed},
			"volume":   {1, aKeptVolumeRepeatsNothing},
			"java":     {4, aGroupIsSharedWithJava},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scene.plays(newAct(t, cluster, "act-"+name, scene.queues, rocketmq.Options{}))
			})
		}
	})

	t.Run("refused", func(t *testing.T) { //nolint:paralleltest // as above
		aRefusedReturnIsKept(
			newAct(t, cluster, "act-refused", 1, rocketmq.Options{}),
			newAct(t, cluster, "act-refused-orderly", 1, rocketmq.Options{Orderly: true}),
		)
	})
}

// act is a topic on a real broker, a group of the same name, and the books over what a job did with them.
type act struct {
	*testing.T
	*bus

	cluster *rocketmqtest.Cluster
	name    string
	queues  int
	logs    *observer.ObservedLogs
	// attempts is how often the job tries a message; down makes its sink fail.
	attempts int
	down     atomic.Bool

	mu        sync.Mutex
	changed   chan struct{} // closed when something is written into the books
	given     []delivery
	written   map[string]int // by body
	events    []actors.Event
	published int
}

// delivery is a message as the job's stage was given it.
type delivery struct {
	body   string
	number int
	place  string
}

func newAct(t *testing.T, cluster *rocketmqtest.Cluster, name string, queues int, o rocketmq.Options) *act {
	t.Helper()

	core, logs := observer.New(zapcore.InfoLevel)
	o.NameServers, o.DelayLevels, o.Log = []string{cluster.NameServer}, realLevels(), zap.New(core)
	o.CallTimeout, o.DialTimeout, o.HoldPull = loaded, loaded, time.Second

	a := &act{
		T: t, bus: openBus(t, o), cluster: cluster, name: name, queues: queues, logs: logs,
		changed: make(chan struct{}), written: map[string]int{}, attempts: 6,
	}
	createTopic(t, cluster, a.bus, name, queues)

	return a
}

// publishes writes n more messages, whose bodies are m-0 and so on.
func (a *act) publishes(n int) {
	a.Helper()

	for range n {
		body := "m-" + strconv.Itoa(a.published)
		if err := a.Publish(a.Context(), a.name, []*pipeline.Message{{ID: a.name + "-" + body, Body: []byte(body)}}); err != nil {
			a.Fatal(err)
		}

		a.published++
	}
}

// starts a job of one stage, which is told what it is given after that is in the books.
func (a *act) starts(
	o actors.Options, timeout time.Duration, stage func(ctx context.Context, body string, number int) error,
) *actors.Running {
	a.Helper()

	noted := pipeline.Func("stage", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		d := delivery{string(m.Body), m.Origin.Delivery, fmt.Sprintf("%s %d", m.Origin.Queue, m.Origin.Offset)}
		a.note(func() { a.given = append(a.given, d) })

		if err := stage(ctx, d.body, d.number); err != nil {
			return err
		}

		return emit(m)
	})
	sink := pipeline.SinkFunc(func(_ context.Context, batch []*pipeline.Message) error {
		if a.down.Load() {
			return errors.New("nobody is at home")
		}

		a.note(func() {
			for _, m := range batch {
				a.written[string(m.Body)]++
			}
		})

		return nil
	})

	o.CommitEvery, o.ReturnBackoff = 100*time.Millisecond, 500*time.Millisecond

	r, err := actors.Start(pipeline.Job{
		Name: a.name, Source: pipeline.Source{Topics: []string{a.name}},
		Retry: pipeline.RetryPolicy{Attempts: a.attempts, Delays: []time.Duration{time.Second}},
		Channels: []pipeline.Channel{{
			Name: "work", Lanes: 2, Timeout: timeout, Stages: []pipeline.Stage{noted}, Sink: sink,
		}},
	}, a.bus, o)
	if err != nil {
		a.Fatal(err)
	}

	r.OnEvent(func(e actors.Event) { a.note(func() { a.events = append(a.events, e) }) })

	return r
}

// note writes something into the books.
func (a *act) note(write func()) {
	a.mu.Lock()
	defer a.mu.Unlock()

	write()
	close(a.changed)
	a.changed = make(chan struct{})
}

// until waits until the books say something.
func (a *act) until(what string, say func() bool) {
	a.Helper()

	for patience := time.After(time.Minute); ; {
		a.mu.Lock()
		said, changed := say(), a.changed
		a.mu.Unlock()

		if said {
			return
		}

		select {
		case <-changed:
		case <-patience:
			a.Fatalf("it never came to it that %s; written is %v, the log says %v", what, a.written, a.logs.All())
		}
	}
}

// happened returns the events of a kind.
func happened[E actors.Event](a *act) (found []E) {
	for _, e := range a.events {
		if e, ok := e.(E); ok {
			found = append(found, e)
		}
	}

	return found
}

// allWritten is what until may wait for.
func (a *act) allWritten() bool { return len(a.written) == a.published }

// ends drains a job, which is to be clean.
func (a *act) ends(r *actors.Running) {
	a.Helper()

	if report := r.Drain(loaded); !report.Clean || report.Err != nil {
		a.Fatalf("not clean: %+v", report)
	}
}

// balances checks that each message was written as often as wanted, and that everything is committed.
func (a *act) balances(most int) {
	a.Helper()

	for n := range a.published {
		if times := a.written["m-"+strconv.Itoa(n)]; times < 1 || times > most {
			a.Errorf("message %d was written %d times, want 1 to %d", n, times, most)
		}
	}

	for _, broker := range a.cluster.Brokers {
		for topic, queues := range map[string]int{a.name: a.queues, consumer.RetryTopic(a.name): 1} {
			for id := range queues {
				end := a.askAt(broker, remoting.GetMaxOffset, topic, id)
				if stored := a.askAt(broker, remoting.QueryConsumerOffset, topic, id); end != stored {
					a.Errorf("%s/%d at %s ends at %s, and committed is %s", topic, id, broker.Name, end, stored)
				}
			}
		}
	}
}

// ask returns an offset of the group in a queue at the first broker.
func (a *act) ask(code int, topic string, id int) string {
	a.Helper()

	return a.askAt(a.cluster.Brokers[0], code, topic, id)
}

func (a *act) askAt(broker *rocketmqtest.Broker, code int, topic string, id int) string {
	a.Helper()

	answer, err := a.client.Call(a.Context(), broker.Addr, &remoting.Command{Code: code, Ext: map[string]string{
		"topic": a.space.Wrap(topic), "queueId": strconv.Itoa(id), "consumerGroup": a.space.Wrap(a.name),
	}}, remoting.QueryNotFound)
	if err != nil {
		a.Fatal(err)
	}

	return answer.Ext["offset"]
}
