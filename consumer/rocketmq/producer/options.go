package producer

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
)

const (
	defaultGroup    = "millrace"
	defaultMaxSize  = 4 << 20
	defaultAbove    = 4 << 10
	defaultAttempts = 3
	defaultEvery    = 30 * time.Second
	// maxSize is below the largest frame, which also carries the properties.
	maxSize = 16<<20 - 1<<17
)

// Options are the settings of a Producer. Only NameServers must be set; the zero value of every other field means the default
// that is named at the field.
type Options struct {
	// NameServers are the addresses of the name servers, "host:port"; at least one.
	NameServers []string
	// Namespace is what the names of topics and the group are wrapped in on the wire; empty means nothing.
	Namespace routes.Namespace
	// Group is told to the brokers, whose consoles show it; empty means "millrace".
	Group string
	// MaxSize is the most bytes of a body, before it is compressed; 0 means 4 MiB, which is also the most that brokers take
	// unless their maxMessageSize says otherwise.
	MaxSize int
	// Compression is how bodies are compressed; 0 means zlib, which every client of RocketMQ reads. The others need readers
	// of version 5.
	Compression record.Compression
	// CompressAbove is the size of a body from which on it is compressed, when that makes it smaller; 0 means 4 KiB, below
	// 0 never.
	CompressAbove int
	// Attempts is how often a message is sent at most, to another broker each time when there is one; 0 means 3. One that
	// was stored although its answer was lost is then stored twice.
	Attempts int
	// RoutesEvery is how often name servers are asked for changes of topics; 0 means 30 s.
	RoutesEvery time.Duration
	// Remoting are the settings of the connections: credentials, TLS, time-outs. Its CallTimeout bounds one attempt; its Log is
	// the producer's.
	Remoting remoting.Options
}

// orDefaults returns o with its zero values filled in, or an error that names every field that makes no sense.
func (o Options) orDefaults() (Options, error) {
	o.Group = cmp.Or(o.Group, defaultGroup)
	o.MaxSize = cmp.Or(o.MaxSize, defaultMaxSize)
	o.Compression = cmp.Or(o.Compression, record.Zlib)
	o.CompressAbove = cmp.Or(o.CompressAbove, defaultAbove)
	o.Attempts = cmp.Or(o.Attempts, defaultAttempts)
	o.RoutesEvery = cmp.Or(o.RoutesEvery, defaultEvery)
	o.Remoting.CallTimeout = cmp.Or(o.Remoting.CallTimeout, remoting.DefaultCallTimeout)
	o.Remoting.Log = cmp.Or(o.Remoting.Log, zap.NewNop())

	wrong := []error{routes.CheckGroup(o.Namespace.Wrap(o.Group))}

	if o.MaxSize < 0 || o.MaxSize > maxSize {
		wrong = append(wrong, fmt.Errorf("rocketmq: producer.Options.MaxSize is %d; a frame holds 1 to %d", o.MaxSize, maxSize))
	}

	if o.Attempts < 0 {
		wrong = append(wrong, fmt.Errorf("rocketmq: producer.Options.Attempts is %d; there is at least 1", o.Attempts))
	}

	if o.RoutesEvery < 0 || o.Remoting.CallTimeout < 0 {
		wrong = append(wrong, fmt.Errorf("rocketmq: producer.Options.RoutesEvery is %s, Remoting.CallTimeout %s: below 0",
			o.RoutesEvery, o.Remoting.CallTimeout))
	}

	return o, errors.Join(wrong...)
}
