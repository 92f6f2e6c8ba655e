package producer_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/producer"
	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

func TestMessagesArriveAsTheyWereSent(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{}, producer.Options{})
		w.CreateTopic("T", 1)

		born := time.UnixMilli(1700000000000)
		first := w.send("T", producer.Message{
			ID: "mine", Key: "a b", Tag: "TagA", Body: []byte("hello"), Born: born, Flag: 7,
			Props: map[string]string{"größe": "5 ½", "none": "", "nul": "\x00"},
		})
		second := w.send("T", producer.Message{})

		q := pipeline.Queue{Topic: "T", Broker: "b0"}
		if want := (producer.Sent{Queue: q, ID: "mine", Durable: true}); first != want {
			t.Errorf("the first is %+v", first)
		}

		got := w.reader.queue(q, 2)
		if r := got[0]; r.ID() != "mine" || string(r.Body) != "hello" || r.Born != born.UnixMilli() || r.Flag != 7 || r.SysFlag != 0 {
			t.Errorf("stored is %+v", r)
		}

		want := map[string]string{
			"KEYS": "a b", "TAGS": "TagA", "UNIQ_KEY": "mine", "größe": "5 ½", "none": "\x00", "nul": "\x00\x00",
		}
		if props := got[0].Props.Map(); !maps.Equal(props, want) {
			t.Errorf("the properties are %q", props)
		}

		for _, value := range []string{"", "\x00", "x\x00", "x"} {
			if back := record.UnfillValue(record.FillValue(value)); back != value {
				t.Errorf("%q becomes %q", value, back)
			}
		}

		// The second has nothing of its own.
		if r := got[1]; string(r.Body) != " " || r.ID() != second.ID || len(second.ID) != 32 || second.Offset != 1 ||
			r.Born != time.Now().UnixMilli() || !maps.Equal(r.Props.Map(), map[string]string{"UNIQ_KEY": second.ID, "millrace.empty": "1"}) {
			t.Errorf("stored is %+v, sent %+v", r, second)
		}
	})
}

func TestLargeBodiesAreCompressed(t *testing.T) {
	t.Parallel()

	text := []byte(strings.Repeat("hello ", 2000))

	for name, o := range map[string]producer.Options{
		"zlib": {}, "lz4": {Compression: record.LZ4}, "zstd": {Compression: record.Zstd},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := setup(t, rocketmqfake.Options{}, o)
			w.CreateTopic("T", 1)

			small := w.send("T", producer.Message{Body: text[:4095]})
			large := w.send("T", producer.Message{Body: text})

			for i, r := range w.reader.queue(large.Queue, 2) {
				if want := [][]byte{text[:4095], text}[i]; !bytes.Equal(r.Body, want) {
					t.Errorf("%s: %d bytes at %d, want %d", name, len(r.Body), i, len(want))
				}
			}

			if step := w.size(large) - w.size(small); step > -3000 {
				t.Errorf("%s: the large one takes %d bytes more", name, step)
			}
		})
	}

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{}, producer.Options{CompressAbove: -1})
		w.CreateTopic("T", 1)

		if got := w.size(w.send("T", producer.Message{Body: text})); got < len(text) {
			t.Errorf("uncompressed it takes %d bytes", got)
		}
	})
}

// size returns the bytes that a message takes in its broker's log.
func (w *world) size(sent producer.Sent) int {
	w.t.Helper()

	all := w.reader.queue(sent.Queue, int(sent.Offset)+1)
	end := w.send(sent.Queue.Topic, producer.Message{Body: []byte("end"), Key: "x"})
	next := w.reader.queue(end.Queue, int(sent.Offset)+2)[sent.Offset+1]

	return int(next.Physical - all[sent.Offset].Physical)
}

func TestADelayedMessageComesLater(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{}, producer.Options{})
		w.CreateTopic("T", 1)

		start := time.Now()
		sent := w.send("T", producer.Message{Body: []byte("x"), Delay: 3}) // 10 s

		if got := w.reader.queue(sent.Queue, 1); len(got) != 1 || time.Since(start) != 10*time.Second {
			t.Errorf("%d came after %v", len(got), time.Since(start))
		}
	})
}

func TestMessagesOfAKeyKeepTheirOrderAndOthersTakeTurns(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{Brokers: 2}, producer.Options{})
		w.CreateTopic("T", 3)

		turns := map[pipeline.Queue]int{}
		for range 12 {
			turns[w.send("T", producer.Message{Body: []byte("x")}).Queue]++
		}

		if len(turns) != 6 || turns[pipeline.Queue{Topic: "T", Broker: "b1", ID: 2}] != 2 {
			t.Errorf("twelve in turn go to %v", turns)
		}

		// Alone and in batches.
		places := map[string]pipeline.Queue{}

		for round := range 5 {
			var batch []producer.Message
			for key := range 10 {
				batch = append(batch, producer.Message{Key: fmt.Sprint("k", key), Body: []byte(strconv.Itoa(round))})
			}

			sent, err := w.producer.SendBatch(t.Context(), "T", batch[:5])
			if err != nil {
				t.Fatal(err)
			}

			for _, m := range batch[5:] {
				sent = append(sent, w.send("T", m))
			}

			for i, s := range sent {
				if q, known := places[batch[i].Key]; known && q != s.Queue {
					t.Errorf("key %s goes to %s, and before to %s", batch[i].Key, s.Queue, q)
				}

				places[batch[i].Key] = s.Queue
			}
		}

		next := map[string]int{}

		for _, records := range w.reader.topic("T") {
			for i := range records {
				if key, keyed := records[i].Props.Get("KEYS"); keyed {
					if got := string(records[i].Body); got != strconv.Itoa(next[key]) {
						t.Errorf("of key %s comes %s, want %d", key, got, next[key])
					}

					next[key]++
				}
			}
		}

		if len(next) != 10 || next["k0"] != 5 || next["k9"] != 5 {
			t.Errorf("stored are %v", next)
		}
	})
}

func TestMessagesThatCannotBeSentAreRefused(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{}, producer.Options{MaxSize: 5 << 20})
		w.CreateTopic("T", 1)

		props := func(name, value string) producer.Message {
			return producer.Message{Body: []byte("x"), Props: map[string]string{name: value}}
		}

		for want, m := range map[string]producer.Message{
			"the body has 5242881 bytes, and Options.MaxSize allows 5242880": {Body: make([]byte, 5<<20+1)},
			"broker b0 refuses it":                     {Body: noise(5 << 20)},
			"the properties have 32772 bytes":          props("p", strings.Repeat("x", 1<<15-1-30-10)),
			"RocketMQ's own; set Delay":                props("DELAY", "3"),
			"RocketMQ's own; set Tag":                  props("TAGS", "3"),
			"RocketMQ's own; leave it out":             props("REAL_TOPIC", "3"),
			"has no name":                              props("", "x"),
			`the property "a" has a character \x01`:    props("a", "x\x02"),
			`the property "TAGS" has a character \x01`: {Body: []byte("x"), Tag: "\x01"},
			"level -1": {Body: []byte("x"), Delay: -1},
		} {
			_, err := w.producer.Send(t.Context(), "T", m)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `topic "T"`) {
				t.Errorf("the error is %v; want %q", err, want)
			}

			if !errors.Is(err, producer.ErrInvalid) && !errors.Is(err, producer.ErrTooLarge) {
				t.Errorf("of no kind: %v", err)
			}
		}

		for _, topic := range []string{"", "größe", strings.Repeat("t", 128)} {
			if _, err := w.producer.Send(t.Context(), topic, producer.Message{}); !errors.Is(err, producer.ErrInvalid) {
				t.Errorf("topic %q: %v", topic, err)
			}

			if _, err := w.producer.SendBatch(t.Context(), topic, nil); !errors.Is(err, producer.ErrInvalid) {
				t.Errorf("topic %q: %v", topic, err)
			}
		}

		if got := w.reader.bodies("T"); len(got) != 0 {
			t.Errorf("stored are %v", got)
		}
	})
}

// noise does not compress.
func noise(n int) []byte {
	body, state := make([]byte, n), uint64(1)
	for i := range body {
		state = state*6364136223846793005 + 1442695040888963407
		body[i] = byte(state >> 56)
	}

	return body
}

func TestTopicsThatCannotBeWrittenTo(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{}, producer.Options{})
		w.CreateTopic("T", 1)

		for _, send := range []func(string) error{
			func(topic string) error {
				_, err := w.producer.Send(t.Context(), topic, producer.Message{})

				return err
			},
			func(topic string) error {
				return w.producer.Publish(t.Context(), topic, []*pipeline.Message{{Body: []byte("x")}})
			},
		} {
			unknown, ok := errors.AsType[*consumer.UnknownTopicError](send("none"))
			if !ok || fmt.Sprint(unknown.Known) != "[T]" {
				t.Errorf("an unknown topic: %v", unknown)
			}
		}

		w.Brokers[0].ReadOnly(true)

		_, err := w.producer.Send(t.Context(), "T", producer.Message{})
		if !errors.Is(err, producer.ErrNotWritable) || !strings.Contains(err.Error(), `"T"`) {
			t.Errorf("for reading only: %v", err)
		}

		w.Brokers[0].ReadOnly(false)
		w.send("T", producer.Message{}) // it heals
		w.StopNameServer()
		w.send("T", producer.Message{}) // the route is known

		if _, err := w.producer.Send(t.Context(), "other", producer.Message{}); !errors.Is(err, routes.ErrUnreachable) {
			t.Errorf("without a name server: %v", err)
		}
	})
}

func TestNamespacesAreOnTheWireOnly(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{}, producer.Options{Namespace: "ns"})
		w.CreateTopic("ns%T", 1)

		if sent := w.send("T", producer.Message{Body: []byte("x")}); sent.Queue.Topic != "T" {
			t.Errorf("sent to %s", sent.Queue)
		}

		if got := w.reader.bodies("ns%T"); got["x"] != 1 {
			t.Errorf("stored are %v", got)
		}
	})
}

func TestAClosedProducerSaysSo(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{}, producer.Options{})
		w.CreateTopic("T", 1)
		w.send("T", producer.Message{})

		w.Fault(rocketmqfake.Faults{Late: time.Hour})

		failed := make(chan error)

		go func() {
			_, err := w.producer.Send(t.Context(), "T", producer.Message{})
			failed <- err
		}()

		synctest.Wait()

		if err := errors.Join(w.producer.Close(), w.producer.Close()); err != nil {
			t.Error(err)
		}

		if err := <-failed; !errors.Is(err, consumer.ErrClosed) {
			t.Errorf("under way: %v", err)
		}

		for _, topic := range []string{"T", "other"} {
			if _, err := w.producer.Send(t.Context(), topic, producer.Message{}); !errors.Is(err, consumer.ErrClosed) {
				t.Errorf("afterwards to %s: %v", topic, err)
			}
		}
	})
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()

	for want, o := range map[string]producer.Options{
		"no name server": {},
		"MaxSize":        {NameServers: []string{"a:1"}, MaxSize: -1},
		"Attempts":       {NameServers: []string{"a:1"}, Attempts: -1},
		"RoutesEvery":    {NameServers: []string{"a:1"}, RoutesEvery: -1},
		"compression 9":  {NameServers: []string{"a:1"}, Compression: 9},
		"group":          {NameServers: []string{"a:1"}, Group: "größe"},
		"n s%":           {NameServers: []string{"a:1"}, Namespace: "n s"},
	} {
		if _, err := producer.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v; want %q", err, want)
		}
	}
}
