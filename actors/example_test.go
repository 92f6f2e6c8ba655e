package actors_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// A job with a stage, a filter, two routes and a dead letter. It reads four events and runs until the last one is done.
func ExampleRun() {
	broker := consumertest.NewBroker(consumertest.Config{}) // or embedded.Open(embedded.Options{Dir: "data"})
	defer broker.Close()

	broker.CreateTopic("quakes", 1)

	for _, body := range []string{"6.1 near the coast", "2.4 inland", "what?", "4.9 at sea"} {
		_ = broker.Publish(context.Background(), "quakes", []*pipeline.Message{{Body: []byte(body)}})
	}

	ctx, stop := context.WithCancel(context.Background())

	classify := pipeline.Func("classify", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		var magnitude float64
		if _, err := fmt.Sscan(string(m.Body), &magnitude); err != nil {
			return pipeline.Reject(fmt.Errorf("no magnitude: %w", err)) // to the dead letters, at once
		}

		if m.Tag = "minor"; magnitude >= 6 {
			m.Tag = "major"
		}

		return emit(m) // or not at all, which filters the message; or several times
	})
	printer := func(prefix string) pipeline.Sink {
		return pipeline.SinkFunc(func(_ context.Context, batch []*pipeline.Message) error {
			for _, m := range batch {
				fmt.Println(prefix, string(m.Body))

				if strings.HasPrefix(string(m.Body), "4.9") {
					stop() // Run drains what is in flight, commits, and returns
				}
			}

			return nil // all of the batch is durable
		})
	}
	major := func(m *pipeline.Message) bool { return m.Tag == "major" }

	err := actors.Run(ctx, pipeline.Job{
		Name:   "quakes",
		Source: pipeline.Source{Topics: []string{"quakes"}},
		Channels: []pipeline.Channel{
			{
				Name: "classify", Order: pipeline.OrderByQueue, Stages: []pipeline.Stage{
					classify, pipeline.Filter("felt", func(m *pipeline.Message) bool { return !strings.HasPrefix(string(m.Body), "2.") }),
				},
				Routes: []pipeline.Route{{To: "alerts", When: major}, {To: "archive"}},
			},
			{Name: "alerts", Sink: printer("alert:  ")},
			{Name: "archive", Sink: printer("archive:")},
		},
	}, broker, actors.Options{})

	fmt.Println("finished:", err == nil, "dead letters:", len(broker.Messages("%DLQ%quakes")))
	// Unordered output:
	// alert:   6.1 near the coast
	// archive: 6.1 near the coast
	// archive: 4.9 at sea
	// finished: true dead letters: 1
}

// supervisor is an actor of an existing system that has a job below it.
type supervisor struct {
	job  *actor.Props
	pid  *actor.PID
	told chan<- any
}

// Receive starts the job, asks it for a snapshot once all is committed, and drains it.
func (s *supervisor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.pid, _ = c.SpawnNamed(s.job, "quakes")
	case *actors.Committed: // forwarded from the event stream
		if m.Queue.Topic == "quakes" && m.Next == 3 {
			c.Request(s.pid, &actors.GetSnapshot{})
		}
	case *actors.Snapshot:
		s.told <- m

		c.Request(s.pid, &actors.Drain{})
	case *actors.Report:
		s.told <- m
	case *actor.Terminated: // the job has ended, for whatever reason; who is not its parent calls c.Watch to be told
	}
}

// A job below an actor of your own, in your own actor system: it is asked, watched and drained by messages, and its typed
// events are on the system's event stream.
func ExampleProps() {
	broker := consumertest.NewBroker(consumertest.Config{})
	defer broker.Close()

	broker.CreateTopic("quakes", 1)
	_ = broker.Publish(context.Background(), "quakes", []*pipeline.Message{{}, {}, {}})

	props, err := actors.Props(pipeline.Job{
		Name:     "quakes",
		Source:   pipeline.Source{Topics: []string{"quakes"}},
		Channels: []pipeline.Channel{{Name: "store", Sink: pipeline.Discard}},
	}, broker, actors.Options{CommitEvery: 1})
	if err != nil {
		fmt.Println(err) // every mistake of the job, with its path

		return
	}

	told := make(chan any, 2)
	system := quietSystem() // or the one that you have
	pid := system.NewLocalPID("supervisor")
	sub := system.EventStream.Subscribe(func(event any) { // before the job can publish any
		if committed, ok := event.(*actors.Committed); ok {
			system.Root.Send(pid, committed)
		}
	})

	_, _ = system.Root.SpawnNamed(
		actor.PropsFromProducer(func() actor.Actor { return &supervisor{job: props, told: told} }), "supervisor")

	if s, ok := (<-told).(*actors.Snapshot); ok {
		fmt.Println("completed:", s.Counts.Completed)
	}

	if r, ok := (<-told).(*actors.Report); ok {
		fmt.Println("clean:", r.Clean)
	}

	system.EventStream.Unsubscribe(sub)
	_ = system.Root.StopFuture(pid).Wait()
	// Output:
	// completed: 3
	// clean: true
}
