package consumer

// RetryTopic returns the name of a group's retry topic, as RocketMQ names it.
func RetryTopic(group string) string { return "%RETRY%" + group }

// DeadLetterTopic returns the name of a group's own dead-letter topic, as RocketMQ names it.
func DeadLetterTopic(group string) string { return "%DLQ%" + group }

// Properties that a broker sets on redelivered and dead messages. The names are millrace's own.
const (
	// PropOriginID is the id of the message's first delivery.
	PropOriginID = "millrace.origin.id"
	// PropOriginTopic is the topic of the message's first delivery.
	PropOriginTopic = "millrace.origin.topic"
	// PropOriginQueue and PropOriginOffset locate the record that was sent back or dead-lettered last. Brokers that make the
	// copy of what is sent back by themselves, as RocketMQ's do, leave them out of that.
	PropOriginQueue  = "millrace.origin.queue"
	PropOriginOffset = "millrace.origin.offset"
	// PropReplays counts how often the message was a dead letter that was replayed.
	PropReplays = "millrace.replays"
	// PropReplayChannel names the channel of the job that alone is to have a replayed message: of the routes only those are
	// taken that lead to it. It is heeded in the group's own retry topic, where no other producer is expected to write.
	PropReplayChannel = "millrace.replay.channel"
)
