package rocketmq_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
	"github.com/millrace/millrace/pipeline"
)

// Members in processes of their own read a topic of a real broker while it is written to. One leaves, one after the other is
// killed and another joins for it, the broker is killed and started again, and the name server is away for a while; in the end
// nothing is lost, and what was done again is counted and held against its bounds. MILLRACE_SCENE_KILLS says how many members are
// killed, and MILLRACE_SCENE_OUTAGE how long the name server is away.
func TestKilledMembersLoseNothing(t *testing.T) {
	t.Parallel()

	kills := numberFrom(t, "MILLRACE_SCENE_KILLS", 10)
	outage := 3 * time.Second

	if text := os.Getenv("MILLRACE_SCENE_OUTAGE"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}

		outage = d
	}

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)

	s := newScene(t, rocketmqtest.Options{})
	s.rnd = rand.New(rand.NewPCG(seed, 0))

	for range 4 {
		s.starts()
	}

	s.until("all queues have an owner", func() bool { return len(s.owners()) == sceneQueues+1 })

	stop := s.publishes()

	defer stop()
	s.pause(2 * time.Second)
	s.ends(s.members[0], syscall.SIGTERM)
	s.pause(2 * time.Second)

	for range kills {
		s.ends(s.anyMember(), syscall.SIGKILL)

		m := s.starts()
		s.until("a member that joins has a queue", func() bool { return len(s.heldBy(m)) > 0 })
		s.pause(time.Duration(s.rnd.IntN(1000)) * time.Millisecond)
	}

	s.starts()
	s.pause(2 * time.Second)
	s.outage(outage)

	s.crashed = time.Now()
	s.cluster.Brokers[0].Kill(t)
	s.cluster.Brokers[0].Start(t)
	s.pause(5 * time.Second)
	stop()
	s.finish()
	s.balances()
}

// Members that lock their queues: those of one that is killed stay locked until the broker forgets that, which takes it a minute, and
// less here. Nobody works on them meanwhile, and nothing is lost.
func TestKilledMembersWithLocksLoseNothing(t *testing.T) {
	t.Parallel()

	const lock = 25 * time.Second // members renew theirs every 20 s

	s := newScene(t, rocketmqtest.Options{
		JVM: []string{fmt.Sprintf("-Drocketmq.broker.rebalance.lockMaxLiveTime=%d", lock.Milliseconds())},
	})
	s.orderly = true

	for range 2 {
		s.starts()
	}

	s.until("all queues have an owner", func() bool { return len(s.owners()) == sceneQueues+1 })

	stop := s.publishes()

	defer stop()
	s.pause(2 * time.Second)

	if took := s.ends(s.members[0], syscall.SIGKILL); took < lock/2 {
		t.Errorf("queues that were locked for %v changed hands after %v", lock, took)
	}

	s.pause(time.Second)
	stop()
	s.finish()

	if again := s.balances(); again > 0 {
		t.Errorf("%d messages were done again without a death", again)
	}
}

const sceneQueues = 8

// numberFrom returns a number from the environment, which `make soak` raises, or what is enough for every day.
func numberFrom(t *testing.T, name string, usual int) int {
	t.Helper()

	text := os.Getenv(name)
	if text == "" {
		return usual
	}

	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}

	return n
}

// scene is a cluster with members in processes of their own, and the books over what they did.
type scene struct {
	*testing.T

	cluster *rocketmqtest.Cluster
	bus     *bus
	dir     string
	members []*sceneMember
	words   chan sceneWord
	owner   map[string]*sceneMember // by queue
	crashed time.Time               // when the broker was killed
	rnd     *rand.Rand
	orderly bool
	// published are the bodies that the broker has acknowledged; they belong to the publisher until it has stopped.
	published []string
}

func newScene(t *testing.T, o rocketmqtest.Options) *scene {
	t.Helper()

	cluster := rocketmqtest.Start(t, o)
	b := openBus(t, rocketmq.Options{NameServers: []string{cluster.NameServer}, CallTimeout: loaded, DialTimeout: loaded})
	createTopic(t, cluster, b, sceneTopic, sceneQueues)

	return &scene{
		T: t, cluster: cluster, bus: b, dir: t.TempDir(), words: make(chan sceneWord, 1024), owner: map[string]*sceneMember{},
	}
}

// anyMember draws one of the members that have not ended.
func (s *scene) anyMember() *sceneMember {
	var alive []*sceneMember

	for _, m := range s.members {
		if !m.ended {
			alive = append(alive, m)
		}
	}

	return alive[s.rnd.IntN(len(alive))]
}

// owners returns the queues that a member which has not ended owns.
func (s *scene) owners() map[string]*sceneMember {
	owners := map[string]*sceneMember{}

	for queue, m := range s.owner {
		if m != nil && !m.ended {
			owners[queue] = m
		}
	}

	return owners
}

func (s *scene) heldBy(m *sceneMember) map[string]bool {
	held := map[string]bool{}

	for queue, owner := range s.owner {
		if owner == m {
			held[queue] = true
		}
	}

	return held
}

// until hears what the members say until something is so.
func (s *scene) until(what string, is func() bool) {
	s.Helper()

	for patience := time.After(2 * time.Minute); !is(); {
		select {
		case w := <-s.words:
			s.hear(w)
		case <-patience:
			s.Fatalf("it never came to it that %s; owners are %v", what, s.owner)
		}
	}
}

// pause hears what the members say for a while.
func (s *scene) pause(d time.Duration) {
	for end := time.After(d); ; {
		select {
		case w := <-s.words:
			s.hear(w)
		case <-end:
			return
		}
	}
}

func (s *scene) hear(w sceneWord) {
	switch {
	case w.word == "A":
		s.owner[w.queue] = w.from
	case s.owner[w.queue] == w.from:
		s.owner[w.queue] = nil
	}
}

// ends a member by a signal and measures how long its queues wait for somebody else.
func (s *scene) ends(m *sceneMember, sig syscall.Signal) time.Duration {
	s.Helper()

	m.held, m.ended, m.killed = s.heldBy(m), true, sig == syscall.SIGKILL
	began := time.Now()

	if err := m.process.Process.Signal(sig); err != nil {
		s.Fatal(err)
	}

	m.exits(s.T)
	m.endedAt = time.Now().UnixMilli()
	s.until("the queues of a member that has ended have an owner", func() bool { return len(s.owners()) == sceneQueues+1 })

	took := time.Since(began)
	s.Logf("member %d, which had %d queues, ended by %v: they have owners after %v", m.number, len(m.held), sig, took.Round(time.Millisecond))

	return took
}

// outage has the name server away for a while, in which work must go on.
func (s *scene) outage(d time.Duration) {
	s.Helper()
	s.cluster.StopNameServer(s.T)

	before := len(s.read().writes)

	s.pause(d)

	if done := len(s.read().writes) - before; done == 0 {
		s.Errorf("nothing was done in the %v without a name server", d)
	} else {
		s.Logf("%d messages were done in the %v without a name server", done, d)
	}

	s.cluster.StartNameServer(s.T)
}

// publishes writes to the topic until the function that it returns is called. What is not acknowledged is sent again.
func (s *scene) publishes() (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})

	go func() {
		defer close(done)

		for n := 0; ctx.Err() == nil; {
			body := fmt.Sprintf("m-%d", n)
			within, free := context.WithTimeout(ctx, loaded)
			err := s.bus.Publish(within, sceneTopic, []*pipeline.Message{{ID: body, Body: []byte(body)}})

			free()

			pause := 4 * time.Millisecond
			if err == nil {
				s.published = append(s.published, body)
				n++
			} else {
				pause = 100 * time.Millisecond
			}

			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()

	return func() {
		cancel()
		<-done
	}
}

// finish waits until everything is done and has the members end in order.
func (s *scene) finish() {
	s.Helper()

	for end := time.Now().Add(2 * time.Minute); ; {
		books := s.read()

		var open []string

		for _, body := range s.published {
			if !books.done[body] {
				open = append(open, body)
			}
		}

		behind := s.behind() // also with nothing open: what a broker that was killed has forgotten is done again
		if len(open) == 0 && len(behind) == 0 {
			break
		}

		if time.Now().After(end) {
			s.Fatalf("behind are %q; %d of %d messages are lost, among them %v", behind, len(open), len(s.published), open[:min(len(open), 10)])
		}

		s.pause(200 * time.Millisecond)
	}

	for _, m := range s.members {
		if !m.ended {
			if err := m.process.Process.Signal(syscall.SIGTERM); err != nil {
				s.Fatal(err)
			}

			m.exits(s.T)
		}
	}

	if behind := s.behind(); len(behind) > 0 {
		s.Errorf("after all have left, behind are %q", behind)
	}
}

// behind names the queues whose committed offset is not their end.
func (s *scene) behind() []string {
	s.Helper()

	var behind []string

	for topic, queues := range map[string]int{sceneTopic: sceneQueues, consumer.RetryTopic(sceneGroup): 1} {
		for id := range queues {
			end, stored := s.ask(remoting.GetMaxOffset, topic, id), s.ask(remoting.QueryConsumerOffset, topic, id)
			if end != stored {
				behind = append(behind, fmt.Sprintf("%s/%d: ends at %s, committed is %s", topic, id, end, stored))
			}
		}
	}

	return behind
}

// ask asks the broker about a queue, and again while it has just been started and is not dialled yet.
func (s *scene) ask(code int, topic string, id int) string {
	s.Helper()

	for end := time.Now().Add(loaded); ; {
		answer, err := s.bus.client.Call(s.Context(), s.cluster.Brokers[0].Addr, &remoting.Command{Code: code, Ext: map[string]string{
			"topic": topic, "queueId": strconv.Itoa(id), "consumerGroup": sceneGroup,
		}}, remoting.QueryNotFound)
		if err == nil {
			return answer.Ext["offset"]
		}

		if time.Now().After(end) {
			s.Fatal(err)
		}

		s.pause(200 * time.Millisecond)
	}
}
