package rocketmq

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/pipeline"
)

const no = "false"

// letter is a message that the member writes itself.
type letter struct {
	topic  string
	queue  int // -1 lets the broker choose
	queues int // of the topic, where the broker makes it by itself
	flag   int32
	born   int64 // ms; 0 means now
	times  int   // that the message was sent back
	props  map[string]string
	body   []byte
}

// send stores a letter at a broker and returns its offset. Nil means that the broker has it, by its own standard of
// durability.
func (m *member) send(ctx context.Context, addr string, l letter) (pipeline.Offset, error) {
	born := cmp.Or(l.born, time.Now().UnixMilli())
	ext := map[string]string{
		"a": m.wire(m.group), "b": m.wire(l.topic), "c": "TBW102", "d": strconv.Itoa(max(l.queues, 1)),
		"e": strconv.Itoa(l.queue), "f": "0", "g": strconv.FormatInt(born, 10),
		"h": strconv.Itoa(int(l.flag)), "i": string(record.Join(l.props)), "j": strconv.Itoa(l.times), "k": no,
		"l": strconv.Itoa(unlimited), "m": no,
	}

	answer, err := m.call(ctx, addr, &remoting.Command{Code: remoting.SendMessageV2, Ext: ext, Body: l.body},
		remoting.FlushDiskTimeout, remoting.SlaveNotAvailable, remoting.FlushSlaveTimeout) // stored all the same

	var at int64
	if err == nil {
		at, err = number(answer, "queueOffset")
	}

	if err != nil {
		return 0, fmt.Errorf("rocketmq: write to topic %q: %w", l.topic, err)
	}

	return pipeline.Offset(at), nil
}

// createTopic makes a topic at one broker, or gives it that many queues.
func (m *member) createTopic(ctx context.Context, addr, topic string, queues int) error {
	n := strconv.Itoa(queues)

	_, err := m.call(ctx, addr, &remoting.Command{Code: remoting.UpdateTopic, Ext: map[string]string{
		"topic": m.wire(topic), "defaultTopic": "TBW102", "readQueueNums": n, "writeQueueNums": n, "perm": "6",
		"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": no,
	}})
	if err != nil {
		return fmt.Errorf("rocketmq: make topic %q: %w", topic, err)
	}

	return nil
}
