package redis

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/internal/trust"
	"github.com/millrace/millrace/plugins/internal/value"
)

// Options say where and what a [Sink] writes.
type Options struct {
	// URL is the server and the database: redis://user:password@host:6379/0, or rediss:// for TLS. Required.
	URL plugins.Secret `help:"The server, such as redis://user:password@host:6379/0; rediss:// for TLS." option:"url,required"`
	// Password is that of the URL's user, in place of the one in the URL.
	Password plugins.Secret `help:"The password, where it is not in the URL." option:"password"`
	// TLS says which servers are trusted; for rediss:// only.
	TLS trust.TLS `help:"Which servers are trusted; for rediss:// only." option:"tls"`
	// Command is what is done with each message. Required.
	Command Command `help:"What is done with each message." option:"command,required"`
	// Key is the name of the stream, the list or the hash. Required.
	Key value.Template `help:"The stream, list or hash; values of the message in braces." option:"key,required"`
	// Fields are the fields of an entry of a stream, or of a hash, each with its value; names are templates. The zero value is
	// a field named body for a stream; a hash needs one.
	Fields map[string]value.Value `help:"Fields of an entry or a hash, with their values; names are templates." option:"fields"`
	// Value is the element of a list. The zero value is the body as it is.
	Value value.Value `help:"What goes into a list; the body when nothing is named." option:"value"`
	// MaxLen is about how many entries a stream keeps. The zero value keeps all.
	MaxLen int64 `help:"About how many entries a stream keeps; all when it is 0." option:"max_len"`
	// Timeout bounds one round trip, and connecting. The zero value is 10 s.
	Timeout plugins.Duration `default:"10s" help:"How long the server may take to answer a batch." option:"timeout"`
	// Connections is how many connections there are at most. The zero value is 4.
	Connections int `default:"4" help:"The most connections at a time." option:"connections"`
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Writes messages to Redis: into streams, lists or hashes.",
		Text: "A batch is one round trip, but no transaction: a command that the server refuses for its data, as for a key " +
			"that holds something else, rejects its message alone, and the others are done. What is not the message's fault, " +
			"such as a server that is full, loading or a replica, is tried again.\n\n" +
			"In streams and hashes a field whose value a message does not have is left out; lists and objects go as JSON. " +
			"A stream is trimmed about at max_len, never below it.\n\n" +
			"Delivery is at least once: a batch whose answer was not heard is written again. In a hash that changes " +
			"nothing; in streams and lists it is there twice. A server that does not write down what it is told (appendfsync " +
			"always) may lose it in a crash.",
		Example: "redis: { url: 'redis://localhost:6379/0', command: xadd, key: 'quakes:{body.region}', max_len: 100000, " +
			"fields: { id: key, mag: body.mag } }",
		Metrics: []plugins.Metric{
			{Name: "written", Help: "Messages that the server has taken."},
			{Name: "batches", Help: "Round trips tried."},
			{Name: "rejected", Help: "Messages that make no command, or one that the server refuses for its data."},
			{Name: "unreachable", Help: "Round trips without an answer to the end."},
		},
	}
}

var _ plugins.Validator = Options{}

// Validate refuses what makes no command.
func (o Options) Validate() error {
	server, err := redis.ParseURL(o.URL.Reveal())
	if err != nil {
		return errors.New("url: is none; it looks like redis://user:password@host:6379/0") // the cause may show the password
	}

	if _, err := o.fields(); err != nil {
		return err
	}

	isList := o.Command == RPush || o.Command == LPush

	switch {
	case o.Command == none:
		return errors.New("command: is required")
	case o.Key.IsZero():
		return errors.New("key: is required")
	case isList && len(o.Fields) > 0:
		return errors.New("fields: a list has none; value says what goes into it")
	case !isList && !o.Value.IsZero():
		return errors.New("value: is for lists; fields say what goes into a stream or a hash")
	case o.Command == HSet && len(o.Fields) == 0:
		return errors.New("fields: a hash needs one at least, such as { '{key}': text }")
	case o.Command != XAdd && o.MaxLen != 0:
		return errors.New("max_len: is for streams only")
	case o.MaxLen < 0:
		return errors.New("max_len: is negative")
	case o.Connections < 0:
		return errors.New("connections: is negative")
	case o.TLS != (trust.TLS{}) && server.TLSConfig == nil:
		return errors.New("tls: the url has to begin with rediss:// for that")
	}

	return nil
}

// field is a field with its value.
type field struct {
	name  value.Template
	value value.Value
}

// fields are the fields in the order of their names.
func (o Options) fields() ([]field, error) {
	all := make([]field, 0, len(o.Fields))

	for _, name := range slices.Sorted(maps.Keys(o.Fields)) {
		t, err := value.ParseTemplate(name)
		if err != nil {
			return nil, fmt.Errorf("fields: %w", err)
		}

		all = append(all, field{name: t, value: o.Fields[name]})
	}

	return all, nil
}

// client is how the server is called.
func (o Options) client() (*redis.Options, error) {
	c, err := redis.ParseURL(o.URL.Reveal())
	if err != nil {
		return nil, errors.New("the url is none") // Validate has said so
	}

	if c.TLSConfig != nil {
		name := c.TLSConfig.ServerName

		if c.TLSConfig, err = o.TLS.Config(); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}

		c.TLSConfig.ServerName = name
	}

	if o.Password.Reveal() != "" {
		c.Password = o.Password.Reveal()
	}

	timeout := time.Duration(o.Timeout)
	c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.PoolTimeout = timeout, timeout, timeout, timeout
	c.ContextTimeoutEnabled = true
	c.PoolSize, c.MaxActiveConns, c.PipelinePoolSize = o.Connections, o.Connections, -1 // one pool, for batches
	c.MaxRetries, c.DialerRetries = -1, 1                                               // to try again is the job's
	c.ClientName, c.DisableIdentity = "millrace", true
	c.Protocol = 2
	c.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

	return c, nil
}

// Command is what is done with a message.
type Command uint8

// What can be done with it.
const (
	none Command = iota
	// XAdd appends an entry to a stream.
	XAdd
	// RPush appends to a list, LPush puts before what is in it.
	RPush
	LPush
	// HSet sets fields of a hash.
	HSet
)

var (
	_ encoding.TextUnmarshaler = (*Command)(nil)
	_ plugins.Typed            = Command(0)
)

// commands are the names, by their numbers less one.
func commands() []string { return []string{"xadd", "rpush", "lpush", "hset"} }

// OptionType lists the commands.
func (Command) OptionType() (name string, values []string) { return "text", commands() }

// UnmarshalText parses a name.
func (c *Command) UnmarshalText(text []byte) error {
	i := slices.Index(commands(), strings.ToLower(string(text)))
	if i < 0 {
		return fmt.Errorf("%q is none of %s", text, strings.Join(commands(), ", "))
	}

	*c = Command(i + 1)

	return nil
}

// String returns the name.
func (c Command) String() string {
	if c == none || int(c) > len(commands()) {
		return ""
	}

	return commands()[c-1]
}
