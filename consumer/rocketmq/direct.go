package rocketmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
)

// verdict is what an administrator is told who has a member take a message.
type verdict struct {
	Order  bool   `json:"order"`
	Commit bool   `json:"autoCommit"`
	Result string `json:"consumeResult"`
	Remark string `json:"remark"`
	Millis int64  `json:"spentTimeMills"` // the protocol's spelling
}

// direct answers an administrator who has this member take a message, which is how consoles send a dead letter again. A job
// takes no message beside its offsets, so it is written to the group's retry topic, from which the group has it like any other:
// with all its attempts, and lost by no crash.
func (m *member) direct(ctx context.Context, request *remoting.Command) *remoting.Command {
	began := time.Now()
	v := verdict{
		Order: m.orderly, Commit: true, Result: "CR_SUCCESS", Remark: "it is in " + m.retry + ", from where the group takes it",
	}

	id, err := m.readmit(ctx, request.Body)
	if err != nil {
		v.Result, v.Remark = "CR_THROW_EXCEPTION", err.Error()
		m.log.Warn("an administrator's message is not taken", zap.String("message", id), zap.Error(err))
	} else {
		m.log.Info("an administrator has given the group a message", zap.String("message", id))
	}

	v.Millis = time.Since(began).Milliseconds()

	return &remoting.Command{Body: encode(v)}
}

// readmit writes a record to the group's retry topic and returns its message's id.
func (m *member) readmit(ctx context.Context, raw []byte) (id string, err error) {
	switch {
	case m.broadcast:
		return "", fmt.Errorf("%w: it has no retry topic, from which to take a message", ErrBroadcast)
	case m.orderly:
		return "", errors.New("rocketmq: while queues are locked brokers lead the retry topic to the dead letters; " +
			"publish the message again (mqadmin queryMsgById -s true, or millrace dlq replay --to TOPIC)")
	}

	records, _, err := m.broker.decoder.Decode(raw, 0)
	if err != nil {
		return "", err //nolint:wrapcheck // of the same family
	}

	if len(records) != 1 {
		return "", fmt.Errorf("rocketmq: there are %d messages in the record, and it is not said which is meant", len(records))
	}

	r := &records[0]
	id = r.ID()

	from := m.home(r)
	if !slices.Contains(m.topics, from) {
		return id, fmt.Errorf("rocketmq: message %s is of topic %q, and group %q reads %s",
			id, from, m.group, strings.Join(m.topics, ", "))
	}

	again := m.copyOf(&original{Record: *r}, m.retry)
	again.props[record.PropRetryTopic] = m.wire(from)
	again.props[record.PropOriginID] = r.OffsetID()

	if first, found := r.Props.Get(record.PropOriginID); found {
		again.props[record.PropOriginID] = first
	}

	if strings.HasPrefix(r.Topic, consumer.DeadLetterTopic("")) {
		replays, _ := strconv.Atoi(again.props[consumer.PropReplays]) // none is 0
		again.props[consumer.PropReplays] = strconv.Itoa(replays + 1)
	}

	maps.DeleteFunc(again.props, func(name, _ string) bool { return strings.HasPrefix(name, consumer.PropDead) })

	return id, m.sendAnywhere(ctx, again)
}

// home returns the topic that a record was published to.
func (m *member) home(r *record.Record) string {
	if !strings.HasPrefix(r.Topic, consumer.DeadLetterTopic("")) && !strings.HasPrefix(r.Topic, consumer.RetryTopic("")) {
		return m.name(r.Topic)
	}

	props := r.Props.Map()

	return cmp.Or(props[consumer.PropOriginTopic], m.name(cmp.Or(props[record.PropRetryTopic], props[propDeadTopic])))
}

// sendAnywhere stores a letter at the first broker of its topic that takes it.
func (m *member) sendAnywhere(ctx context.Context, l letter) error {
	known, err := m.routes.Of(ctx, l.topic)
	if err != nil {
		return err //nolint:wrapcheck // of the same family
	}

	err = fmt.Errorf("%w: no broker of topic %q has a master", ErrUnreachable, l.topic)

	for _, addr := range known.Masters() {
		if _, err = m.send(ctx, addr, l); err == nil || routes.Code(err) < 0 { // no answer: it may be stored
			break
		}
	}

	return err
}
