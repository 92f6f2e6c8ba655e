package rocketmq

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/pipeline"
)

// Options configure [Open]. Only NameServers must be set; the zero value of every other field means the default that is
// named at the field.
type Options struct {
	// NameServers are the addresses of the name servers, "host:port"; at least one. They are asked one after the other
	// until one answers.
	NameServers []string
	// Filters say what is wanted of a topic; a topic that is not named is read whole. All members of a group must have
	// the same ones.
	Filters map[string]Filter
	// Namespace separates the users of one cluster: all names get it as a prefix on the wire, and nowhere else. Empty
	// means none.
	Namespace string
	// Credentials sign what is sent; zero means that nothing is signed.
	Credentials remoting.Credentials
	// TLS is used on every connection; nil means none. The server is verified unless it says otherwise.
	TLS *tls.Config
	// Start is told to the brokers, whose consoles show it. Where a job really starts is up to who calls Find. Zero is
	// [pipeline.First].
	Start pipeline.Start
	// JavaFirstBoot keeps a habit of RocketMQ's own clients: for a group that has stored nothing, the broker may say that
	// 0 is stored while a queue still has its first message, whatever start position was wished. The default asks for
	// what is stored and nothing else. Brokers of version 4 know only the habit.
	JavaFirstBoot bool
	// Orderly makes members lock their queues at the broker: a queue that is taken away goes to its next owner when it was
	// released, or when the broker has not heard of its owner for a minute. Redeliveries do not work in such a group: its
	// jobs retry in place.
	Orderly bool
	// Sharing is the rule by which members share queues; the zero value is [ShareAverage]. All members of a group must
	// have the same.
	Sharing Sharing
	// Instance names members whose subscription does not; empty means a name that is made up of host, process and chance.
	Instance string
	// ClientID is the whole name of a member at the brokers, for who needs a certain one; empty means that it is made of
	// this machine's address and the instance. Only one member of a group may have it.
	ClientID string
	// OffsetDir is where broadcasting members keep their offsets; empty means ".rocketmq_offsets" in the user's home, where
	// RocketMQ's own clients keep theirs.
	OffsetDir string
	// DelayLevels are the brokers' delays (their messageDelayLevel), shortest first; nil means RocketMQ's own eighteen.
	// What is sent back waits for the first of them that is long enough.
	DelayLevels []time.Duration
	// NoCheckpoints keeps offsets only: what was finished above them is done again after a change of owners.
	NoCheckpoints bool
	// HoldPull is how long a broker holds a pull that finds nothing; 0 means 15 s. It may answer 5 s later than that.
	HoldPull time.Duration
	// CallTimeout bounds every other call; 0 means 3 s. DialTimeout bounds the making of a connection; 0 means 3 s.
	CallTimeout, DialTimeout time.Duration
	// HeartbeatEvery and RoutesEvery are how often brokers hear of a member and name servers are asked for changes of
	// topics; 0 means 30 s each. Brokers forget a member after 120 s of silence.
	HeartbeatEvery, RoutesEvery time.Duration
	// RebalanceEvery is how often a member looks who else there is, besides when it is told of a change; 0 means 20 s.
	RebalanceEvery time.Duration
	// Dial makes the connection below TLS; nil means TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Log gets what no call can report: resets, lost members, brokers that cannot be reached. Nil means nothing is logged.
	Log *zap.Logger
}

// Sharing is a rule by which the members of a group share queues.
type Sharing uint8

// The rules. The zero value is ShareAverage.
const (
	// ShareAverage gives each member a block of neighbouring queues.
	ShareAverage Sharing = iota
	// ShareByCircle deals the queues out one by one.
	ShareByCircle
)

const (
	defaultHold      = 15 * time.Second
	defaultCall      = 3 * time.Second
	defaultHeartbeat = 30 * time.Second
	defaultRebalance = 20 * time.Second
	maxGroup         = 120
	maxTopic         = 127
)

// orDefaults returns o with its zero values filled in, or an error that names every field that makes no sense.
func (o Options) orDefaults() (Options, error) {
	wrong := []error{o.checkServers()}

	for _, d := range []struct {
		name string
		is   time.Duration
	}{
		{"HoldPull", o.HoldPull},
		{"CallTimeout", o.CallTimeout},
		{"DialTimeout", o.DialTimeout},
		{"HeartbeatEvery", o.HeartbeatEvery},
		{"RoutesEvery", o.RoutesEvery},
		{"RebalanceEvery", o.RebalanceEvery},
	} {
		if d.is < 0 {
			wrong = append(wrong, fmt.Errorf("rocketmq: Options.%s is %s, below 0", d.name, d.is))
		}
	}

	for topic, f := range o.Filters {
		if err := f.check(); err != nil {
			wrong = append(wrong, fmt.Errorf("rocketmq: Options.Filters[%q]: %w", topic, err))
		}
	}

	if o.Namespace != "" {
		wrong = append(wrong, checkName("Options.Namespace", o.Namespace, maxGroup))
	}

	if o.Sharing > ShareByCircle {
		wrong = append(wrong, fmt.Errorf("rocketmq: Options.Sharing is %d, which is no rule", o.Sharing))
	}

	if !slices.IsSorted(o.DelayLevels) || len(o.DelayLevels) > 0 && o.DelayLevels[0] <= 0 {
		wrong = append(wrong, fmt.Errorf("rocketmq: Options.DelayLevels are %v: they must be above 0 and grow", o.DelayLevels))
	}

	o.HoldPull = cmp.Or(o.HoldPull, defaultHold)
	o.CallTimeout = cmp.Or(o.CallTimeout, defaultCall)
	o.DialTimeout = cmp.Or(o.DialTimeout, remoting.DefaultDialTimeout)
	o.HeartbeatEvery = cmp.Or(o.HeartbeatEvery, defaultHeartbeat)
	o.RoutesEvery = cmp.Or(o.RoutesEvery, defaultHeartbeat)
	o.RebalanceEvery = cmp.Or(o.RebalanceEvery, defaultRebalance)
	o.Log = cmp.Or(o.Log, zap.NewNop())

	if o.DelayLevels == nil {
		o.DelayLevels = delayLevels()
	}

	return o, errors.Join(wrong...)
}

func (o Options) checkServers() error {
	if len(o.NameServers) == 0 {
		return errors.New("rocketmq: Options.NameServers is empty: name at least one, such as 127.0.0.1:9876")
	}

	var wrong []error

	for _, addr := range o.NameServers {
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
			wrong = append(wrong, fmt.Errorf("rocketmq: name server %q is not host:port, such as 127.0.0.1:9876", addr))
		}
	}

	return errors.Join(wrong...)
}

// remoting returns the settings of a client.
func (o Options) remoting() remoting.Options {
	return remoting.Options{
		Credentials: o.Credentials, TLS: o.TLS, DialTimeout: o.DialTimeout, CallTimeout: o.CallTimeout, Dial: o.Dial, Log: o.Log,
	}
}

// delayLevels are what brokers have when nobody configures them.
func delayLevels() []time.Duration {
	const s, m, h = time.Second, time.Minute, time.Hour

	return []time.Duration{
		s, 5 * s, 10 * s, 30 * s, m, 2 * m, 3 * m, 4 * m, 5 * m, 6 * m, 7 * m, 8 * m, 9 * m, 10 * m, 20 * m, 30 * m, h, 2 * h,
	}
}
