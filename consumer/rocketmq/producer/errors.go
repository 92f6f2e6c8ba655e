package producer

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// Errors of sending. Each comes wrapped in words that name the topic, the broker, and what to do.
var (
	// ErrTooLarge is returned for a message that is larger than Options.MaxSize or than a broker takes. Sending it again does
	// not help.
	ErrTooLarge = errors.New("rocketmq: message too large")
	// ErrInvalid is returned for a message that cannot be sent as it is. Sending it again does not help.
	ErrInvalid = errors.New("rocketmq: invalid message")
	// ErrNotWritable is returned when a topic has no queue to write to.
	ErrNotWritable = errors.New("rocketmq: topic not writable")
)

// retriable reports whether another attempt, maybe at another broker, may help.
func retriable(err error) bool {
	switch routes.Code(err) {
	case -1: // no answer; when the client is closed there never is one
		return !errors.Is(err, remoting.ErrClosed) && !errors.Is(err, remoting.ErrTooLarge)
	case remoting.SystemError, remoting.SystemBusy, remoting.ServiceNotAvailable, remoting.FlowControl, remoting.GoAway,
		remoting.TopicNotExist, remoting.InvalidParameter: // the last two: the route is old
		return true
	default:
		return false
	}
}

// isBusy reports whether the broker is well and only has too much to do.
func isBusy(err error) bool {
	code := routes.Code(err)

	return code == remoting.SystemBusy || code == remoting.FlowControl || errors.Is(err, remoting.ErrBusy)
}

// explain puts words around the last failure to send.
func explain(q pipeline.Queue, attempts int, err error) error {
	switch routes.Code(err) {
	case remoting.TopicNotExist:
		return &consumer.UnknownTopicError{Topic: q.Topic}
	case remoting.NoPermission:
		return fmt.Errorf("%w to write to topic %q at broker %s: check the credentials and their rights, "+
			"and the topic's permission: %w", routes.ErrNoPermission, q.Topic, q.Broker, err)
	case remoting.MessageIllegal:
		return fmt.Errorf("%w: broker %s refuses it for topic %q: raise its maxMessageSize, or make it smaller: %w",
			ErrTooLarge, q.Broker, q.Topic, err)
	}

	if errors.Is(err, remoting.ErrClosed) {
		return consumer.ErrClosed
	}

	_, lost := errors.AsType[*remoting.ConnectionError](err)
	_, late := errors.AsType[*remoting.TimeoutError](err)

	if lost || late {
		return fmt.Errorf("%w: send to topic %q, %d attempts, the last at broker %s; is it up, and does the address that it "+
			"gives to name servers (brokerIP1) lead there? %w", routes.ErrUnreachable, q.Topic, attempts, q.Broker, err)
	}

	return fmt.Errorf("rocketmq: send to topic %q, %d attempts, the last at broker %s: %w", q.Topic, attempts, q.Broker, err)
}
