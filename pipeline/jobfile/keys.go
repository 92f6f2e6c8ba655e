package jobfile

import "github.com/millrace/millrace/plugins"

// The types of keys that no option of a plugin has.
const (
	typeChannels  = "channels"
	typeRoute     = "route"
	typeStage     = "stage"
	typeGather    = "gather"
	typeSink      = "sink"
	typeEmbedded  = "embedded broker"
	typeRocketMQ  = "rocketmq"
	typeCondition = "expression"
	typeText      = "text"
	typeSecret    = "secret"
	typeInteger   = "integer"
	typeBoolean   = "boolean"
	typeDuration  = "duration"
	typeSize      = "size"
	typeOptions   = "options"
)

// Keys describes the keys of a job file, as a plugin's options are described. Their types are those of options, and
// channels, route, stage, gather, sink, rocketmq and "embedded broker"; what those hold is described by [ChannelKeys] and the
// like.
func Keys() []plugins.Option {
	return []plugins.Option{
		{
			Name: keyName, Type: typeText, Required: true,
			Help: "The job's name in logs, reports and the names of its actors: letters, digits, '.', '_' and '-'.",
		},
		{
			Name: "broker", Type: typeOptions,
			Help: "What the jobs of the file run on. The first job of a file names it; the others share it.",
			Options: []plugins.Option{
				{Name: "embedded", Type: typeEmbedded, Help: "A broker in a directory, which needs nothing installed."},
				{Name: typeRocketMQ, Type: typeRocketMQ, Help: "A cluster of Apache RocketMQ, 4.9 or 5.x."},
			},
		},
		{Name: "source", Type: typeOptions, Required: true, Help: "What the job consumes.", Options: sourceKeys()},
		{Name: "retry", Type: typeOptions, Help: "What becomes of messages that fail.", Options: retryKeys()},
		{
			Name: "channels", Type: typeChannels, Required: true,
			Help: "The channels by their names, in order. Messages enter the first one, unless source.to names another.",
		},
	}
}

func sourceKeys() []plugins.Option {
	return []plugins.Option{
		{Name: "topic", Type: typeText, Help: "The topic to read. A source has this or topics."},
		{Name: "topics", Type: typeText, List: true, Help: "The topics to read, where there are several."},
		{Name: "group", Type: typeText, Help: "The consumer group whose offsets are used.", Default: "the job's name"},
		{
			Name: "start", Type: typeText, Default: "first",
			Help: "Where to begin where the group has no offset: first, last, or a time such as 2026-01-31T12:00:00Z.",
		},
		{
			Name: "broadcast", Type: typeBoolean, Default: isFalse,
			Help: "Every member reads everything. A message that fails is then logged, counted and dropped.",
		},
		{Name: "to", Type: typeText, Help: "The channel that messages enter.", Default: "the first channel"},
	}
}

func retryKeys() []plugins.Option {
	return []plugins.Option{
		{
			Name: "attempts", Type: typeInteger, Default: "16",
			Help: "The most deliveries of a message, the first included. After the last one it goes to the dead letters.",
		},
		{
			Name: "delay", Type: typeDuration, List: true, Default: "10s, 30s, 1m … 10m, 20m, 30m, 1h",
			Help: "How long each retry waits, one after the other; further ones wait the last. A single one need not be a list.",
		},
		{
			Name: "dead_letter", Type: typeText, Default: "the group's own",
			Help: "The topic for messages that failed for good.",
		},
	}
}

// ChannelKeys describes the keys of a channel.
func ChannelKeys() []plugins.Option {
	return []plugins.Option{
		{Name: "lanes", Type: typeInteger, Default: "1", Help: "How many messages are worked on at once."},
		{
			Name: "order", Type: typeText, Values: []string{"none", "key", "queue"}, Default: "none",
			Help: "What order is kept: none, that of messages with one key, or that of a queue.",
		},
		{
			Name: "timeout", Type: typeDuration, Default: "30s",
			Help: "How long a message may be worked on, or a batch be written, before it is given up.",
		},
		{
			Name: "breaker", Type: typeOptions, Default: "on", Options: breakerKeys(),
			Help: "When the channel pauses because nearly everything fails at a stage or the sink, as it does when what they " +
				"need is down: one message at a time is tried, and nothing goes to the dead letters. " +
				"It may also be off or on alone.",
		},
		{Name: "stages", Type: typeStage, List: true, Help: "What is done with each message, one after the other."},
		{
			Name: "batch", Type: typeOptions, Help: "How messages are collected for the sink or the gather.",
			Options: []plugins.Option{
				{Name: "messages", Type: typeInteger, Default: "256", Help: "The most messages of a batch."},
				{Name: "bytes", Type: typeSize, Help: "The size at which a batch is full.", Default: "no limit"},
				{
					Name: "every", Type: typeDuration, Default: "1s when messages or bytes is given, else no wait",
					Help: "The longest wait of a message in a batch that is not full.",
				},
			},
		},
		{Name: "gather", Type: typeGather, Help: "What makes messages of a whole batch; they take the routes."},
		{Name: "routes", Type: typeRoute, List: true, Help: "Where messages go. Each route that matches gets a copy."},
		{Name: "sink", Type: typeSink, Help: "Where messages end. A channel has a sink or routes."},
	}
}

// RouteKeys describes the keys of a route, which may also be the name of a channel alone.
func RouteKeys() []plugins.Option {
	return []plugins.Option{
		{Name: "when", Type: typeCondition, Help: "Which messages take the route. Without when and tag all do."},
		{Name: "tag", Type: typeText, List: true, Help: "The tags that take the route. A single one need not be a list."},
		{Name: "to", Type: typeText, Required: true, Help: "The channel that the route leads to."},
	}
}

// EmbeddedKeys describes the keys of the embedded broker, which may also be its directory alone.
func EmbeddedKeys() []plugins.Option {
	return []plugins.Option{
		{
			Name: "dir", Type: typeText, Required: true,
			Help: "The directory, relative to where the command runs. It is made when it is missing.",
		},
		{
			Name: "topics", Type: typeInteger, Table: true,
			Help: "The topics to make when they are missing, and how many queues each has. Without it, what the jobs read " +
				"and write is made with 4 queues.",
		},
		{Name: "sync", Type: typeBoolean, Default: isTrue, Help: "Wait for the disk before anything is acknowledged."},
		{
			Name: "keep", Type: typeOptions, Help: "What topics keep; everything when it is left out.",
			Options: []plugins.Option{
				{Name: "age", Type: typeDuration, Help: "How long a message is kept.", Default: "for ever"},
				{Name: "bytes", Type: typeSize, Help: "How much a topic keeps.", Default: "everything"},
				{
					Name: "unread", Type: typeText, Values: []string{"keep", "drop"}, Default: "keep",
					Help: "What happens to messages over these limits that a group has not read.",
				},
			},
		},
	}
}
