package rocketmq_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/pipeline"
)

// book counts what a job's sink was given, by body.
type book struct {
	mu   sync.Mutex
	seen map[string]int
}

func (b *book) write(_ context.Context, batch []*pipeline.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	for _, m := range batch {
		b.seen[string(m.Body)]++
	}

	return nil
}

// jobOf fails every seventh message twice and rejects every thirteenth.
func jobOf(b *book) pipeline.Job {
	moody := pipeline.Func("moody", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		n, err := strconv.Atoi(string(m.Body))

		switch {
		case err != nil || n%13 == 0:
			return pipeline.Reject(errors.New("unlucky"))
		case n%7 == 0 && m.Origin.Delivery < 3:
			return errors.New("not yet")
		default:
			return emit(m)
		}
	})

	return pipeline.Job{
		Name: group, Source: pipeline.Source{Topics: []string{topic}},
		Retry:    pipeline.RetryPolicy{Delays: []time.Duration{time.Second}},
		Channels: []pipeline.Channel{{Name: "c", Lanes: 4, Stages: []pipeline.Stage{moody}, Sink: pipeline.SinkFunc(b.write)}},
	}
}

// With everything going wrong for ten minutes, and members coming and going, nothing is lost; and when it stops, everything is
// committed.
func TestJobLosesNothingWhateverGoesWrong(t *testing.T) {
	t.Parallel()

	for seed := range uint64(3) {
		for _, orderly := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d, orderly %v", seed, orderly), func(t *testing.T) {
				t.Parallel()

				o := rocketmq.Options{Orderly: orderly}
				inBubble(t, rocketmqfake.Options{Brokers: 2, Seed: seed}, o, everythingGoesWrong)
			})
		}
	}
}

func everythingGoesWrong(w *world) {
	const n, queues = 600, 3

	w.fake.CreateTopic(topic, queues)

	b := &book{seen: map[string]int{}}

	var jobs []*actors.Running

	for i := range 2 {
		r, err := actors.Start(jobOf(b), w.bus, actors.Options{Instance: "member-" + strconv.Itoa(i)})
		if err != nil {
			w.Fatal(err)
		}

		jobs = append(jobs, r)
	}

	trouble := rocketmqfake.Faults{
		SendBack: 0.2, Commit: 0.2, MemberList: 0.3, Drop: 0.02, Broken: 0.01, GoAway: 0.02, Late: 50 * time.Millisecond,
	}

	for i := range n {
		w.publish(strconv.Itoa(i + 1))

		switch i {
		case n / 10:
			w.fake.Fault(trouble)
		case n / 3:
			w.fake.Fault(rocketmqfake.Faults{})
			w.fake.Brokers[1].Crash()
			<-time.After(10 * time.Second)

			if err := w.fake.Brokers[1].Start(); err != nil {
				w.Fatal(err)
			}
		case n / 2:
			w.fake.Fault(rocketmqfake.Faults{MemberList: 1})
			<-time.After(2 * time.Minute)
			w.fake.Fault(rocketmqfake.Faults{})
		case 2 * n / 3:
			w.fake.Storm(group, 10, time.Second)
		}

		if i%10 == 0 {
			w.fake.Fault(rocketmqfake.Faults{}) // for the publisher, who does not try again
			<-time.After(time.Second)
			w.fake.Fault(trouble)
			<-time.After(time.Second)
			w.fake.Fault(rocketmqfake.Faults{})
		}
	}

	<-time.After(5 * time.Minute)

	for i, r := range jobs {
		if snapshot, err := r.Snapshot(w.Context()); err == nil {
			for _, q := range snapshot.Queues {
				w.Logf("job %d has %s at %d of %d: %s", i, q.Queue, q.Committed, q.End, q.Err)
			}
		}

		if report := r.Drain(time.Minute); report.Err != nil {
			w.Errorf("a job ended with %v", report.Err)
		}
	}

	w.balances(b, n)
}

// balances checks that each message was written or is a dead letter, and that everything is committed.
func (w *world) balances(b *book, n int) {
	w.Helper()

	dead := 0

	for i := 1; i <= n; i++ {
		switch seen := b.seen[strconv.Itoa(i)]; {
		case i%13 == 0:
			dead++
		case seen == 0:
			w.Errorf("message %d is lost", i)
		}
	}

	buried := 0

	for i, broker := range w.fake.Brokers {
		for _, name := range []string{topic, "%RETRY%" + group} {
			for id := range 3 {
				end := w.askAt(broker.Addr, remoting.GetMaxOffset, name, id)
				stored := w.askAt(broker.Addr, remoting.QueryConsumerOffset, name, id)

				if end != stored && end != "0" {
					w.Errorf("%s@b%d/%d ends at %s, and committed is %s", name, i, id, end, stored)
				}
			}
		}

		end, _ := strconv.Atoi(w.askAt(broker.Addr, remoting.GetMaxOffset, "%DLQ%"+group, 0))
		buried += end
	}

	if buried < dead {
		w.Errorf("%d dead letters, want %d or more", buried, dead)
	}
}

func (w *world) askAt(addr string, code int, topic string, id int) string {
	w.Helper()

	answer, err := w.client.Call(w.Context(), addr, &remoting.Command{Code: code, Ext: map[string]string{
		"topic": topic, "queueId": strconv.Itoa(id), "consumerGroup": group,
	}}, remoting.QueryNotFound)
	if err != nil {
		w.Fatal(err)
	}

	return answer.Ext["offset"]
}
