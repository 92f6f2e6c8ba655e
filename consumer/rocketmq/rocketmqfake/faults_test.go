package rocketmqfake_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
)

// inBubble runs a test against a cluster in memory, in virtual time.
func inBubble(t *testing.T, o rocketmqfake.Options, test func(*asker, *rocketmqfake.Cluster)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		cluster, err := rocketmqfake.New(o)
		if err != nil {
			t.Fatal(err)
		}

		defer cluster.Close()

		cluster.CreateTopic("T", 1)

		a := &asker{T: t, nameServer: cluster.NameServer, addr: cluster.Brokers[0].Addr, name: "b0", dial: cluster.Dial}
		a.open()
		defer a.client.Close()

		test(a, cluster)
	})
}

// try makes a call and returns how it failed.
func (a *asker) try(code int, ext map[string]string) (*remoting.Command, error) {
	ctx, cancel := context.WithTimeout(a.Context(), patience)
	defer cancel()

	return a.client.Call(ctx, a.addr, &remoting.Command{Code: code, Ext: ext})
}

func commitOf(offset string) fieldMap {
	return fieldMap{"consumerGroup": "G", "topic": "T", "queueId": "0", "commitOffset": offset, "setZeroIfNotFound": "false"}
}

func TestDelaysTakeTheirTimeInVirtualTime(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, func(a *asker, _ *rocketmqfake.Cluster) {
		a.sendTo("T", "later", "DELAY\x0118\x02", nil)

		began := time.Now()
		r, err := a.try(remoting.PullMessage, pullOf("G", "T", "0", fieldMap{"sysFlag": "6", "suspendTimeoutMillis": "15000"}))

		refused, ok := errors.AsType[*remoting.ResponseError](err)
		if !ok || refused.Code != remoting.PullNotFound || time.Since(began) != 15*time.Second {
			t.Errorf("a held pull without a message: %+v, %v after %v", r, err, time.Since(began))
		}

		<-time.After(2 * time.Hour)

		if r, err := a.try(remoting.PullMessage, pullOf("G", "T", "0", nil)); err != nil || len(records(a.T, r.Body)) != 1 {
			t.Errorf("two hours later: %+v, %v", r, err)
		}
	})
}

func TestEachFaultIsSeenAndHeals(t *testing.T) {
	t.Parallel()

	heartbeat := func(a *asker) { a.call(a.addr, remoting.Heartbeat, nil, beat("m", "G", "T", "*", "CLUSTERING", 1)) }

	for name, c := range map[string]struct {
		faults rocketmqfake.Faults
		code   int
		ext    fieldMap
		seen   func(*remoting.Command, error) bool
	}{
		"send back":   {rocketmqfake.Faults{SendBack: 1}, remoting.SendMessageBack, fieldMap{"offset": "0", "group": "G", "delayLevel": "1"}, refusedWith(remoting.SystemError)},
		"commit":      {rocketmqfake.Faults{Commit: 1}, remoting.UpdateConsumerOffset, commitOf("1"), refusedWith(remoting.SystemError)},
		"member list": {rocketmqfake.Faults{MemberList: 1}, remoting.GetConsumerList, fieldMap{"consumerGroup": "G"}, noMembers},
		"offset":      {rocketmqfake.Faults{Offset: 1}, remoting.QueryConsumerOffset, commitOf("1"), noOffset},
		"go away":     {rocketmqfake.Faults{GoAway: 1}, remoting.GetMaxOffset, commitOf("1"), refusedWith(remoting.GoAway)},
		"drop":        {rocketmqfake.Faults{Drop: 2}, remoting.GetMaxOffset, commitOf("1"), isLost},
		"broken":      {rocketmqfake.Faults{Broken: 1}, remoting.GetMaxOffset, commitOf("1"), isLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			inBubble(t, rocketmqfake.Options{Seed: 1}, func(a *asker, cluster *rocketmqfake.Cluster) {
				a.sendTo("T", "x", "", nil)
				heartbeat(a)

				if _, err := a.try(remoting.UpdateConsumerOffset, commitOf("7")); err != nil {
					t.Fatal(err)
				}

				cluster.Fault(c.faults)

				if r, err := a.try(c.code, c.ext); !c.seen(r, err) {
					t.Errorf("the fault is not seen: %+v, %v", r, err)
				}

				cluster.Fault(rocketmqfake.Faults{})
				<-time.After(10 * time.Second) // until the client connects again
				heartbeat(a)

				r, err := a.try(c.code, c.ext)
				if err != nil || c.code == remoting.QueryConsumerOffset && r.Ext["offset"] != "7" {
					t.Errorf("it does not heal: %+v, %v", r, err)
				}
			})
		})
	}
}

func refusedWith(code int) func(*remoting.Command, error) bool {
	return func(_ *remoting.Command, err error) bool {
		refused, ok := errors.AsType[*remoting.ResponseError](err)

		return ok && refused.Code == code
	}
}

func isLost(_ *remoting.Command, err error) bool {
	_, ok := errors.AsType[*remoting.ConnectionError](err)

	return ok
}

func noMembers(r *remoting.Command, err error) bool {
	return err != nil || len(r.Body) == 0 || string(r.Body) == `{"consumerIdList":[]}`
}

func noOffset(r *remoting.Command, err error) bool { return err != nil || r.Ext["offset"] != "7" }

func TestLateAnswersFindTheirCalls(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, func(a *asker, cluster *rocketmqfake.Cluster) {
		cluster.Fault(rocketmqfake.Faults{Late: time.Second})

		began := time.Now()
		if _, err := a.try(remoting.GetMaxOffset, commitOf("0")); err != nil || time.Since(began) == 0 {
			t.Errorf("a late answer: %v after %v", err, time.Since(began))
		}
	})
}

func TestACrashForgetsOnlyFreshOffsets(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, func(a *asker, cluster *rocketmqfake.Cluster) {
		a.sendTo("T", "kept", "", nil)
		a.call(a.addr, remoting.Heartbeat, nil, beat("m", "G", "T", "*", "CLUSTERING", 1))

		for _, offset := range []string{"1", "2"} {
			if _, err := a.try(remoting.UpdateConsumerOffset, commitOf(offset)); err != nil {
				t.Fatal(err)
			}

			<-time.After(6 * time.Second)
		}

		if _, err := a.try(remoting.UpdateConsumerOffset, commitOf("3")); err != nil {
			t.Fatal(err)
		}

		cluster.Brokers[0].Crash()

		if _, err := a.try(remoting.GetMaxOffset, commitOf("0")); !isLost(nil, err) {
			t.Errorf("a call to a broker that crashed: %v", err)
		}

		if err := cluster.Brokers[0].Start(); err != nil {
			t.Fatal(err)
		}

		<-time.After(10 * time.Second)

		if r, err := a.try(remoting.QueryConsumerOffset, commitOf("0")); err != nil || r.Ext["offset"] != "2" {
			t.Errorf("the offset after the crash: %+v, %v", r, err)
		}

		if r, err := a.try(remoting.GetMaxOffset, commitOf("0")); err != nil || r.Ext["offset"] != "1" {
			t.Errorf("the messages after the crash: %+v, %v", r, err)
		}

		if _, err := a.try(remoting.GetConsumerList, fieldMap{"consumerGroup": "G"}); !refusedWith(remoting.SystemError)(nil, err) {
			t.Errorf("the members after the crash: %v", err)
		}
	})
}

func TestRoutesFollowTheBrokers(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{Brokers: 2}, func(a *asker, cluster *rocketmqfake.Cluster) {
		brokers := func() (n int) {
			r := a.call(a.nameServer, remoting.GetRouteInfo, fieldMap{"topic": "T"}, nil)
			for _, b := range cluster.Brokers {
				if bytes.Contains(r.Body, []byte(b.Addr)) {
					n++
				}
			}

			return n
		}

		if n := brokers(); n != 2 {
			t.Fatalf("%d brokers in the route, want 2", n)
		}

		cluster.Brokers[1].Vanish()

		if n := brokers(); n != 2 {
			t.Errorf("%d brokers in the route while the name server has not noticed, want 2", n)
		}

		if err := cluster.Brokers[1].Start(); err != nil {
			t.Fatal(err)
		}

		cluster.Brokers[1].Stop()

		if n := brokers(); n != 1 {
			t.Errorf("%d brokers in the route after a stop, want 1", n)
		}
	})
}

func TestAStormNotifiesAndEnds(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{Seed: 3}, func(a *asker, cluster *rocketmqfake.Cluster) {
		a.call(a.addr, remoting.Heartbeat, nil, beat("m", "G", "T", "*", "CLUSTERING", 1))
		cluster.Storm("G", 20, time.Second)

		if n := len(a.pushed); n != 21 {
			t.Errorf("%d notices, want one of the own join and twenty of the storm", n)
		}

		r := a.call(a.addr, remoting.GetConsumerList, fieldMap{"consumerGroup": "G"}, nil)
		if string(r.Body) != `{"consumerIdList":["m"]}` {
			t.Errorf("after the storm the members are %s", r.Body)
		}
	})
}

func TestExpiredMessagesMoveTheReader(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, func(a *asker, cluster *rocketmqfake.Cluster) {
		for range 3 {
			a.sendTo("T", "x", "", nil)
		}

		cluster.Brokers[0].Trim("T", 0, 2)

		_, err := a.try(remoting.PullMessage, pullOf("G", "T", "0", nil))
		moved, ok := errors.AsType[*remoting.ResponseError](err)

		if !ok || moved.Code != remoting.PullOffsetMoved || moved.Ext["nextBeginOffset"] != "2" {
			t.Errorf("a pull below the first message: %v", err)
		}
	})
}

func TestEveryCallEndsOnABadDay(t *testing.T) {
	t.Parallel()

	seed := rand.Uint64()
	t.Logf("seed %d", seed)

	inBubble(t, rocketmqfake.Options{Seed: seed}, func(a *asker, cluster *rocketmqfake.Cluster) {
		a.call(a.addr, remoting.Heartbeat, nil, beat("m", "G", "T", "*", "CLUSTERING", 1))
		cluster.Fault(rocketmqfake.Faults{
			Commit: 0.05, Offset: 0.05, Drop: 0.05, Broken: 0.05, GoAway: 0.05, Late: time.Second,
		})

		var failed int

		for i := range 500 {
			if _, err := a.try(remoting.UpdateConsumerOffset, commitOf(strconv.Itoa(i))); err != nil {
				failed++
			}

			<-time.After(time.Second)
		}

		if failed < 20 || failed > 400 {
			t.Errorf("%d of 500 calls failed on a bad day", failed)
		}

		cluster.Fault(rocketmqfake.Faults{})
		<-time.After(10 * time.Second)

		if _, err := a.try(remoting.UpdateConsumerOffset, commitOf("500")); err != nil {
			t.Fatal(err)
		}

		if r, err := a.try(remoting.QueryConsumerOffset, commitOf("0")); err != nil || r.Ext["offset"] != "500" {
			t.Errorf("after it the offset is %+v, %v", r, err)
		}
	})
}
