package rocketmq_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// bus is a broker with a publisher beside it.
type bus struct {
	*rocketmq.Broker

	table  *routes.Table
	client *remoting.Client
	space  routes.Namespace
	turn   atomic.Int64

	mu   sync.Mutex
	ends map[pipeline.Queue]int64 // behind what was published
}

// settled waits until everything that was published can be pulled.
func (b *bus) settled(ctx context.Context) error {
	b.mu.Lock()
	ends := maps.Clone(b.ends)
	b.mu.Unlock()

	for q, end := range ends {
		for {
			addr, err := b.table.Master(ctx, q)
			if err != nil {
				return err
			}

			answer, err := b.client.Call(ctx, addr, &remoting.Command{Code: remoting.GetMaxOffset, Ext: map[string]string{
				"topic": b.space.Wrap(q.Topic), "queueId": strconv.Itoa(q.ID), "bname": q.Broker,
			}})
			if err != nil {
				return err
			}

			if at, _ := strconv.ParseInt(answer.Ext["offset"], 10, 64); at >= end {
				break
			}

			<-time.After(5 * time.Millisecond)
		}
	}

	return nil
}

func openBus(t *testing.T, o rocketmq.Options) *bus {
	t.Helper()

	b, err := rocketmq.Open(o)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})

	client := remoting.NewClient(remoting.Options{
		Dial: o.Dial, TLS: o.TLS, Credentials: o.Credentials, CallTimeout: o.CallTimeout, DialTimeout: o.DialTimeout,
	})
	t.Cleanup(client.Close)

	table, err := routes.New(routes.Options{Client: client, NameServers: o.NameServers, Namespace: routes.Namespace(o.Namespace)})
	if err != nil {
		t.Fatal(err)
	}

	return &bus{Broker: b, table: table, client: client, space: routes.Namespace(o.Namespace), ends: map[pipeline.Queue]int64{}}
}

// Publish implements consumer.Publisher.
func (b *bus) Publish(ctx context.Context, topic string, messages []*pipeline.Message) error {
	route, err := b.table.Of(ctx, topic)
	if err != nil {
		return err
	}

	for _, m := range messages {
		at := int(b.turn.Add(1))
		if m.Key != "" {
			h := fnv.New32a()
			h.Write([]byte(m.Key))
			at = int(h.Sum32())
		}

		q := route.Writable[at%len(route.Writable)]
		props := map[string]string{"WAIT": "true", "UNIQ_KEY": m.ID}
		if m.ID == "" {
			props["UNIQ_KEY"] = fmt.Sprintf("%X", at)
		}
		if m.Key != "" {
			props["KEYS"] = m.Key
		}
		if m.Tag != "" {
			props["TAGS"] = m.Tag
		}
		for name, value := range m.Props {
			if strings.Trim(value, "\x00") == "" {
				value += "\x00"
			}
			props[name] = value
		}
		body := m.Body
		if len(body) == 0 {
			body, props["millrace.empty"] = []byte(" "), "1"
		}
		born := m.Born
		if born.IsZero() {
			born = time.Now()
		}
		var text strings.Builder
		for _, key := range slices.Sorted(maps.Keys(props)) {
			text.WriteString(key + "\x01" + props[key] + "\x02")
		}

		answer, err := b.client.Call(ctx, route.Master(q.Broker), &remoting.Command{Code: remoting.SendMessageV2, Ext: map[string]string{
			"a": "publishers", "b": b.space.Wrap(topic), "c": "TBW102", "d": "4", "e": strconv.Itoa(q.ID), "f": "0",
			"g": strconv.FormatInt(born.UnixMilli(), 10), "h": "0", "i": text.String(), "j": "0", "k": "false", "m": "false", "n": q.Broker,
		}, Body: body})
		if err != nil {
			return err
		}

		place, _ := strconv.ParseInt(answer.Ext["queueOffset"], 10, 64)
		b.mu.Lock()
		b.ends[q] = max(b.ends[q], place+1)
		b.mu.Unlock()
	}

	return nil
}

var _ consumer.Publisher = (*bus)(nil)
