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
	"github.com/millrace/millrace/consumer/rocketmq/routes"
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
	// Start is told to the brokers, whose consoles show it. Where a job really starts is up to who calls Find. The zero
	// value is [pipeline.First].
	Start pipeline.Start
	// JavaFirstBoot keeps a habit of RocketMQ's own clients: for a group that has stored nothing, the broker may say that
	// 0 is stored while a queue still has its first message, whatever start position was wished. The default asks for
	// what is stored and nothing else. Brokers of version 4 know only the habit.
	JavaFirstBoot bool
	// OffsetsOnly keeps no more of a checkpoint than its offset, which needs no topic for it: what was finished above the
	// offset is done again when a queue changes hands or a job starts again.
	OffsetsOnly bool
	// Orderly makes members lock their queues at the broker: a queue that is taken away goes to its next owner when it was
	// released, or when the broker has not heard of its owner for a minute. Broadcasting members lock nothing.
	Orderly bool
	// Circle shares the queues of a topic by [consumer.AllocateCircle], as Java's AllocateMessageQueueAveragelyByCircle
	// does: each member then has queues of all brokers. The default is [consumer.Allocate], which is also Java's. All
	// members of a group must have the same rule.
	Circle bool
	// OffsetDir is where broadcasting members keep their offsets, in files below their instances' names; empty means
	// ".rocketmq_offsets" in the user's home, where RocketMQ's own clients keep theirs. A member that has none takes over those
	// of a Java client with the same address and instance.
	OffsetDir string
	// DelayLevels are the brokers' delays (their messageDelayLevel), shortest first; nil means RocketMQ's own eighteen.
	// What is sent back waits for the first of them that is long enough.
	DelayLevels []time.Duration
	// HoldPull is how long a broker holds a pull that finds nothing; 0 means 15 s. It may answer 5 s later than that.
	HoldPull time.Duration
	// CallTimeout bounds every other call; 0 means 3 s. DialTimeout bounds the making of a connection; 0 means 3 s.
	CallTimeout, DialTimeout time.Duration
	// HeartbeatEvery is how often brokers hear of a member, which they forget after 120 s of silence; 0 means 30 s.
	HeartbeatEvery time.Duration
	// RoutesEvery is how often name servers are asked for changes of topics; 0 means 30 s.
	RoutesEvery time.Duration
	// RebalanceEvery is how often a member looks who else there is, besides when it is told of a change; 0 means 20 s.
	RebalanceEvery time.Duration
	// Dial makes the connection below TLS; nil means TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Log gets what no call can report: resets, lost members, brokers that cannot be reached. Nil means nothing is logged.
	Log *zap.Logger
}

const (
	defaultHold      = 15 * time.Second
	defaultHeartbeat = 30 * time.Second
	defaultRoutes    = 30 * time.Second
	defaultRebalance = 20 * time.Second
)

// orDefaults returns o with its zero values filled in, or an error that names every field that makes no sense.
func (o Options) orDefaults() (Options, error) {
	var wrong []error

	for _, d := range []struct {
		name string
		is   *time.Duration
		or   time.Duration
	}{
		{"HoldPull", &o.HoldPull, defaultHold},
		{"CallTimeout", &o.CallTimeout, remoting.DefaultCallTimeout},
		{"DialTimeout", &o.DialTimeout, remoting.DefaultDialTimeout},
		{"HeartbeatEvery", &o.HeartbeatEvery, defaultHeartbeat},
		{"RoutesEvery", &o.RoutesEvery, defaultRoutes},
		{"RebalanceEvery", &o.RebalanceEvery, defaultRebalance},
	} {
		if *d.is < 0 {
			wrong = append(wrong, fmt.Errorf("rocketmq: Options.%s is %s, below 0", d.name, *d.is))
		}

		*d.is = cmp.Or(*d.is, d.or)
	}

	for topic, f := range o.Filters {
		if err := errors.Join(routes.CheckTopic(topic), f.check()); err != nil {
			wrong = append(wrong, fmt.Errorf("rocketmq: Options.Filters[%q]: %w", topic, err))
		}
	}

	if o.DelayLevels == nil {
		o.DelayLevels = delayLevels()
	}

	if len(o.DelayLevels) == 0 || !slices.IsSorted(o.DelayLevels) || o.DelayLevels[0] <= 0 {
		wrong = append(wrong, fmt.Errorf("rocketmq: Options.DelayLevels are %v: they must be above 0 and grow", o.DelayLevels))
	}

	o.Log = cmp.Or(o.Log, zap.NewNop())

	return o, errors.Join(wrong...)
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
