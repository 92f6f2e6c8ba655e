package remoting

// What we say about ourselves in each frame.
const (
	// Language is the implementation that a frame comes from. The servers know only a list of names; Go is one.
	Language = "GO"
	// Version is the protocol's version, an ordinal: 479 is release 5.3.3. It makes name servers answer in standard JSON,
	// brokers heed a consumer's limit of deliveries, and servers that shut down say so ([GoAway]).
	Version = 479
)

// The bits of Command.Flag.
const (
	flagResponse = 1 << 0
	flagOneway   = 1 << 1
)

// Command is what one frame carries: a request or a response. Who makes a request sets Code, Ext and Body; the rest is
// set by the connection that sends it.
type Command struct {
	// Code says what a request asks for, or how it went.
	Code int
	// Language is the implementation that the frame comes from, Version its version of the protocol.
	Language string
	Version  int
	// Opaque ties a response to its request.
	Opaque int32
	// Flag holds the bits that IsResponse and IsOneway read.
	Flag int32
	// Remark is a text for people, mostly about a failure.
	Remark string
	// Ext are the fields of the request or response by name. Numbers are decimal, booleans "true" or "false".
	Ext map[string]string
	// Body is what follows the header; it may be empty. That of a frame that was read belongs to whoever gets the Command.
	Body []byte
}

// IsResponse reports whether c answers a request.
func (c *Command) IsResponse() bool { return c.Flag&flagResponse != 0 }

// IsOneway reports whether nobody waits for an answer to c.
func (c *Command) IsOneway() bool { return c.Flag&flagOneway != 0 }
