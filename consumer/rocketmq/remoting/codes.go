package remoting

// Requests to name servers.
const (
	GetRouteInfo      = 105
	GetClusterInfo    = 106
	DeleteTopicRoutes = 216
)

// Requests to brokers.
const (
	SendMessage          = 10
	PullMessage          = 11
	QueryConsumerOffset  = 14
	UpdateConsumerOffset = 15
	UpdateTopic          = 17
	SearchOffset         = 29
	GetMaxOffset         = 30
	GetMinOffset         = 31
	Heartbeat            = 34
	UnregisterClient     = 35
	SendMessageBack      = 36
	GetConsumerList      = 38
	LockQueues           = 41
	UnlockQueues         = 42
	CheckClientConfig    = 46
	UpdateGroup          = 200
	GetAllGroups         = 201
	GetTopicStats        = 202
	DeleteGroup          = 207
	GetConsumeStats      = 208
	DeleteTopic          = 215
	ResetOffset          = 222
	SendMessageV2        = 310
	SendMessageBatch     = 320
)

// Requests that brokers send to us.
const (
	NotifyConsumerChange = 40 // one way
	ResetClientOffset    = 220
	GetClientStatus      = 221
	GetRunningInfo       = 307
	ConsumeDirectly      = 309
)

// Responses.
const (
	Success               = 0
	SystemError           = 1
	SystemBusy            = 2
	NotSupported          = 3
	FlushDiskTimeout      = 10
	SlaveNotAvailable     = 11
	FlushSlaveTimeout     = 12
	MessageIllegal        = 13
	ServiceNotAvailable   = 14
	VersionNotSupported   = 15
	NoPermission          = 16
	TopicNotExist         = 17
	PullNotFound          = 19
	PullRetryImmediately  = 20
	PullOffsetMoved       = 21
	QueryNotFound         = 22
	SubscriptionParseFail = 23
	SubscriptionNotExist  = 24
	SubscriptionNotLatest = 25
	GroupNotExist         = 26
	FilterDataNotExist    = 27
	FilterDataNotLatest   = 28
	InvalidParameter      = 29
	ConsumerNotOnline     = 206
	FlowControl           = 215
	GoAway                = 1500
)

// responseName returns what a response code says in words, or "" for one that this package has no words for.
func responseName(code int) string {
	switch code {
	case SystemError:
		return "system error"
	case SystemBusy:
		return "system busy"
	case NotSupported:
		return "request not supported"
	case MessageIllegal:
		return "illegal message"
	case ServiceNotAvailable:
		return "service not available"
	case NoPermission:
		return "no permission"
	case TopicNotExist:
		return "no such topic"
	case PullOffsetMoved:
		return "offset moved"
	case QueryNotFound:
		return "not found"
	case SubscriptionParseFail:
		return "subscription cannot be parsed"
	case SubscriptionNotExist:
		return "no such subscription"
	case SubscriptionNotLatest:
		return "subscription is not the latest"
	case GroupNotExist:
		return "no such group"
	case InvalidParameter:
		return "invalid parameter"
	case FlowControl:
		return "flow control"
	case GoAway:
		return "shutting down"
	default:
		return ""
	}
}
