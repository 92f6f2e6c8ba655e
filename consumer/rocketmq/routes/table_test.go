package routes_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// world is a table of a fake cluster.
type world struct {
	*rocketmqfake.Cluster
	*routes.Table

	client *remoting.Client
	logs   *observer.ObservedLogs
}

// setup makes a world. It is called in a bubble of synctest, which has to end empty.
func setup(t *testing.T, brokers int, o routes.Options) *world {
	t.Helper()

	fake, err := rocketmqfake.New(rocketmqfake.Options{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(fake.Close)

	core, logs := observer.New(zapcore.WarnLevel)
	o.Client = remoting.NewClient(remoting.Options{Dial: fake.Dial})
	o.Log = zap.New(core)

	t.Cleanup(o.Client.Close)

	if o.NameServers == nil {
		o.NameServers = []string{fake.NameServer}
	}

	table, err := routes.New(o)
	if err != nil {
		t.Fatal(err)
	}

	return &world{fake, table, o.Client, logs}
}

func TestRoutesAreThoseOfTheNameServer(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, 2, routes.Options{})
		w.CreateTopic("T", 2)

		if w.Cached("T") != nil {
			t.Error("a new table knows a route")
		}

		route, err := w.Of(t.Context(), "T")
		if err != nil {
			t.Fatal(err)
		}

		want := "[T@b0/0 T@b0/1 T@b1/0 T@b1/1]"
		if got := fmt.Sprint(route.Readable); got != want {
			t.Errorf("readable are %s", got)
		}

		if got := fmt.Sprint(route.Writable); got != want {
			t.Errorf("writable are %s", got)
		}

		addrs := []string{w.Cluster.Brokers[0].Addr, w.Cluster.Brokers[1].Addr}
		if got := route.Addresses(); !slices.Equal(got, addrs) {
			t.Errorf("the brokers are at %v", got)
		}

		if route.QueuesAt("b1") != 2 || route.QueuesAt("b9") != 0 || len(route.Masters()) != 2 {
			t.Errorf("b1 has %d queues, masters are %v", route.QueuesAt("b1"), route.Masters())
		}

		q := pipeline.Queue{Topic: "T", Broker: "b1"}
		for _, find := range []func() (string, error){
			func() (string, error) { return w.Master(t.Context(), q) },
			func() (string, error) { return w.Reader(t.Context(), q, 0) },
			func() (string, error) { return w.Reader(t.Context(), q, 7) }, // no such id: any
		} {
			if addr, err := find(); err != nil || addr != addrs[1] {
				t.Errorf("%s is at %q, %v", q, addr, err)
			}
		}

		q.Broker = "b9"
		if addr, err := w.Master(t.Context(), q); !errors.Is(err, routes.ErrUnreachable) || !strings.Contains(err.Error(), "b9") {
			t.Errorf("%s is at %q, %v", q, addr, err)
		}
	})
}

func TestAReadOnlyBrokerIsNotWritable(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, 2, routes.Options{})
		w.CreateTopic("T", 1)
		w.Cluster.Brokers[0].ReadOnly(true)

		route, err := w.Refresh(t.Context(), "T")
		if err != nil || len(route.Readable) != 2 || fmt.Sprint(route.Writable) != "[T@b1/0]" {
			t.Errorf("the route is %+v, %v", route, err)
		}
	})
}

func TestAnOldRouteStaysWhenNoneIsToBeHad(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, 1, routes.Options{})
		w.CreateTopic("T", 1)

		old, err := w.Of(t.Context(), "T")
		if err != nil {
			t.Fatal(err)
		}

		w.StopNameServer()

		if _, err := w.Refresh(t.Context(), "T"); !errors.Is(err, routes.ErrUnreachable) || !strings.Contains(err.Error(), w.NameServer) {
			t.Errorf("without a name server: %v", err)
		}

		if known, err := w.Of(t.Context(), "T"); known != old || err != nil {
			t.Errorf("the route is %v, %v", known, err)
		}

		w.Forget("T")

		if w.Cached("T") != nil {
			t.Error("a route is not forgotten")
		}
	})
}

func TestKeepFollowsChanges(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, 1, routes.Options{})
		w.CreateTopic("T", 1)

		if _, err := w.Of(t.Context(), "T"); err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})

		go func() {
			w.Keep(ctx, 30*time.Second)
			close(done)
		}()

		w.CreateTopic("T", 3)
		<-time.After(29 * time.Second)

		if got := len(w.Cached("T").Readable); got != 1 {
			t.Errorf("before its time the route has %d queues", got)
		}

		<-time.After(2 * time.Second)

		if got := len(w.Cached("T").Readable); got != 3 {
			t.Errorf("the route has %d queues", got)
		}

		w.StopNameServer()
		<-time.After(30 * time.Second)

		if got := len(w.Cached("T").Readable); got != 3 || w.logs.Len() == 0 {
			t.Errorf("without a name server the route has %d queues; logged: %v", got, w.logs.All())
		}

		cancel()
		<-done
	})
}

func TestUnknownTopicsAreToldWithTheKnown(t *testing.T) {
	t.Parallel()

	for space, want := range map[routes.Namespace]string{"": "[A B]", "ns": "[C]"} {
		synctest.Test(t, func(t *testing.T) {
			w := setup(t, 1, routes.Options{Namespace: space})
			for _, topic := range []string{"B", "A", "ns%C", "%RETRY%g", "%RETRY%ns%g", "b0", "C", "C_REPLY_TOPIC", routes.Checkpoints + "g"} {
				w.CreateTopic(topic, 1)
			}

			_, err := w.Of(t.Context(), "none")

			unknown, ok := errors.AsType[*consumer.UnknownTopicError](w.Explain(t.Context(), err))
			if !ok || unknown.Topic != "none" || fmt.Sprint(unknown.Known) != want {
				t.Errorf("in namespace %q: %v", space, err)
			}

			for topic, legal := range map[string]bool{"A": space == "", "C": true, "ns%C": space == "", "TBW102": true} {
				if _, err := w.Of(t.Context(), topic); (err == nil) != legal {
					t.Errorf("in namespace %q topic %s: %v", space, topic, err)
				}
			}
		})
	}
}

func TestEveryNameServerIsAsked(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, 1, routes.Options{NameServers: []string{"127.0.0.1:1", "127.0.0.1:9876"}})
		w.CreateTopic("T", 1)

		for range 2 {
			if _, err := w.Refresh(t.Context(), "T"); err != nil {
				t.Error(err)
			}
		}

		// What one says counts more than another's silence.
		if _, err := w.Refresh(t.Context(), "none"); routes.Code(err) != -1 || errors.Is(err, routes.ErrUnreachable) {
			t.Errorf("an unknown topic: %v", err)
		}

		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("had enough"))

		if _, err := w.Refresh(ctx, "T"); err == nil || !strings.Contains(err.Error(), "had enough") {
			t.Errorf("cancelled: %v", err)
		}

		w.client.Close()

		if _, err := w.Refresh(t.Context(), "T"); !errors.Is(err, consumer.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// TestASilentNameServerLeavesTimeForTheNext has a first name server that takes connections and never answers.
func TestASilentNameServerLeavesTimeForTheNext(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		silent := setup(t, 1, routes.Options{})
		silent.Fault(rocketmqfake.Faults{Late: 24 * time.Hour})

		w := setup(t, 1, routes.Options{})
		w.CreateTopic("T", 1)

		client := remoting.NewClient(remoting.Options{Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			if addr == "silent:9876" {
				return silent.Dial(ctx, silent.NameServer)
			}

			return w.Dial(ctx, addr)
		}})
		defer client.Close()

		table, err := routes.New(routes.Options{Client: client, NameServers: []string{"silent:9876", w.NameServer}})
		if err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()

		start := time.Now()
		if _, err := table.Refresh(ctx, "T"); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestBrokersAreListed(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, 2, routes.Options{})

		brokers, err := w.Table.Brokers(t.Context())
		if err != nil || len(brokers) != 2 || brokers[1].Name != "b1" || brokers[1].Addrs[0] != w.Cluster.Brokers[1].Addr ||
			brokers[1].Cluster != "C" {
			t.Errorf("the brokers are %+v, %v", brokers, err)
		}
	})
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()

	_, err := routes.New(routes.Options{NameServers: []string{"a:1", "b"}, Namespace: "n s"})
	for _, want := range []string{`"b" is not host:port`, "Client is nil", `namespace "n s"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v; want %q in it", err, want)
		}
	}

	if err := routes.CheckNameServers(nil); err == nil {
		t.Error("no name server is enough")
	}
}
