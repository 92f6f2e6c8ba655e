package httpsink

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/expression"
	"github.com/millrace/millrace/plugins/internal/httpcall"
	"github.com/millrace/millrace/plugins/internal/trust"
)

// Options say where and how a [Sink] sends.
type Options struct {
	// URL is where requests go. Required. Names of values in braces may stand behind the server's name; values are escaped.
	URL string `help:"Where requests go; values of the message in braces." option:"url,required,main"`
	// Method is POST or PUT. The zero value is POST.
	Method Method `default:"POST" help:"The method of the requests." option:"method"`
	// Batch says what a request holds. The zero value is [BatchNone].
	Batch Batch `default:"none" help:"What a request holds: a message, a JSON array, or lines." option:"batch"`
	// Headers go with every request, beside a Content-Type that fits Batch. They are templates, as URL is.
	Headers map[string]string `help:"Headers of every request; values of the message in braces." option:"headers"`
	// Auth is how requests say who sends them.
	Auth httpcall.Auth `help:"How requests say who sends them." option:"auth"`
	// TLS says which servers are trusted.
	TLS trust.TLS `help:"Which servers are trusted." option:"tls"`
	// Timeout bounds one request with its answer. The zero value is 10 s.
	Timeout plugins.Duration `default:"10s" help:"How long a request with its answer may take." option:"timeout"`
	// Accept are the statuses that mean that the messages are taken. None: 2xx.
	Accept []httpcall.Status `help:"Statuses that mean taken; 2xx when none is given." option:"accept"`
	// Retry are the statuses that mean that the messages are to be sent again; all others reject. None: 401, 403, 407, 408,
	// 425, 429, 5xx, and redirections, which are not followed.
	Retry []httpcall.Status `help:"Statuses to try again; 401, 403, 407, 408, 425, 429, 3xx, 5xx by default." option:"retry"`
	// Results is what an accepted answer says of each message, for servers that take a part of a request. None: it takes all.
	Results expression.Expression `help:"What an accepted answer says of each message, an expression." option:"results"`
	// MaxAnswer is how much of an answer Results may need. The zero value is 1 MiB.
	MaxAnswer plugins.Size `default:"1MiB" help:"How much of an answer is read." option:"max_answer"`
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Sends messages to an HTTP server, one or a batch a request.",
		Text: "An answer of 2xx means that the server has the messages. Otherwise 408, 425, 429 and 5xx try again, after the " +
			"time that the server asks for in Retry-After, and so do 401, 403 and 407, since a token that has expired is no " +
			"fault of a message; the others reject the messages. Where the server refuses a " +
			"batch with 400, 413 or 422 it is sent again in halves, so that only the message that is wrong is rejected.\n\n" +
			"Values of messages can stand in the path, the query and the headers; only messages that agree in them share a " +
			"request. One without such a value is rejected. In a URL values are escaped.\n\n" +
			"Some servers answer 200 and take a part. results is an expression over such an answer, where body is its JSON: " +
			"for array and lines a list of what became of each message in its order, or a table by the numbers of messages, " +
			"from 0, of those that were not taken; for none what became of the message. Nil and true stand for taken, a " +
			"number is a status, which accept and retry judge as that of a request, and { status: ..., reason: ... } says " +
			"why, too. When it fits no answer, all messages of the request fail and are sent again. Elasticsearch: " +
			"'map(body.items, .index.status)'.\n\n" +
			"Delivery is at least once: a request whose answer was lost is sent again.",
		Example: "http: { url: 'https://example.org/quakes/{body.region}', batch: lines, auth: { bearer: s3cret }, timeout: 5s }",
		Metrics: []plugins.Metric{
			{Name: "requests", Help: "Requests sent."},
			{Name: "messages", Help: "Messages that a server has taken."},
			{Name: "declined", Help: "Messages that an answer said were not taken, though its status was accepted."},
			{Name: "bytes", Help: "Bytes of the requests' bodies."},
			{Name: "refused", Help: "Requests answered with a status that is not accepted."},
			{Name: "unreachable", Help: "Requests without an answer."},
		},
	}
}

var _ plugins.Validator = Options{}

// Validate refuses an address that nobody can call, and templates with unknown names.
func (o Options) Validate() error {
	_, err := o.target()

	return err
}

// target is where requests go.
func (o Options) target() (*httpcall.Target, error) {
	return httpcall.NewTarget(o.URL, o.Headers, o.Batch.contentType()) //nolint:wrapcheck // names the option
}

// Method is how messages are sent.
type Method string

// The methods.
const (
	// Post adds.
	Post Method = http.MethodPost
	// Put replaces.
	Put Method = http.MethodPut
)

var (
	_ encoding.TextUnmarshaler = (*Method)(nil)
	_ plugins.Typed            = Method("")
)

// OptionType lists the methods.
func (Method) OptionType() (name string, values []string) {
	return "text", []string{string(Post), string(Put)}
}

// UnmarshalText parses POST or PUT.
func (m *Method) UnmarshalText(text []byte) error {
	*m = Method(text)
	if *m != Post && *m != Put {
		return fmt.Errorf("%q is neither POST nor PUT", text)
	}

	return nil
}

// Batch is what a request holds.
type Batch uint8

// What a request can hold.
const (
	// BatchNone: one message, its body as it is.
	BatchNone Batch = iota
	// BatchArray: a JSON array of bodies. One that is not JSON is rejected.
	BatchArray
	// BatchLines: bodies with a line break behind each. One with a line break in it is rejected.
	BatchLines
)

var (
	_ encoding.TextUnmarshaler = (*Batch)(nil)
	_ plugins.Typed            = Batch(0)
)

// OptionType lists what a request can hold.
func (Batch) OptionType() (name string, values []string) {
	return "text", []string{"none", "array", "lines"}
}

// UnmarshalText parses none, array or lines.
func (b *Batch) UnmarshalText(text []byte) error {
	switch string(text) {
	case "none":
		*b = BatchNone
	case "array":
		*b = BatchArray
	case "lines":
		*b = BatchLines
	default:
		return fmt.Errorf("%q is none of none, array and lines", text)
	}

	return nil
}

// contentType is what a request holds, for the server.
func (b Batch) contentType() string {
	if b == BatchLines {
		return "application/x-ndjson"
	}

	return "application/json"
}

// fits reports why a body cannot be part of a request.
func (b Batch) fits(body []byte) error {
	switch {
	case b == BatchArray && !json.Valid(body):
		return ErrNotJSON
	case b == BatchLines && bytes.IndexByte(body, '\n') >= 0:
		return ErrLineBreak
	default:
		return nil
	}
}
