package httplookup

import (
	"encoding"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/expression"
	"github.com/millrace/millrace/plugins/internal/httpcall"
	"github.com/millrace/millrace/plugins/internal/place"
	"github.com/millrace/millrace/plugins/internal/trust"
)

// Options say what is asked, and where the answer goes.
type Options struct {
	// URL is where requests go. Required. Names of values in braces may stand behind the server's name; values are escaped.
	URL string `help:"Where requests go; values of the message in braces." option:"url,required,main"`
	// Into is where the answer goes: props.NAME, body.PATH, or body for the whole of it. Required.
	Into place.Place `help:"Where the answer goes: props.NAME, body.NAME, or body, in place of it." option:"into,required"`
	// Take is what is taken of an answer, where body is its JSON and text all of it. None takes all: as text into a property,
	// as JSON into the body.
	Take expression.Expression `help:"What is taken of an answer, an expression; all of it when left out." option:"take"`
	// Method is GET, POST or PUT. The zero value is GET.
	Method Method `default:"GET" help:"The method of the requests." option:"method"`
	// Headers go with every request. They are templates, as URL is.
	Headers map[string]string `help:"Headers of every request; values of the message in braces." option:"headers"`
	// Body is what a request holds: a text as it is, anything else as JSON. None: nothing.
	Body expression.Expression `help:"What a request holds, an expression; what is no text goes as JSON." option:"body"`
	// Missing says what becomes of a message that the server knows nothing for. The zero value rejects it.
	Missing Missing `default:"reject" help:"What becomes of a message that there is nothing for." option:"missing"`
	// Cache is which answers are remembered. The zero value remembers none.
	Cache Cache `help:"Which answers are remembered, and how long." option:"cache"`
	// Auth is how requests say who sends them.
	Auth httpcall.Auth `help:"How requests say who sends them." option:"auth"`
	// TLS says which servers are trusted.
	TLS trust.TLS `help:"Which servers are trusted." option:"tls"`
	// Timeout bounds one request with its answer. The zero value is 10 s.
	Timeout plugins.Duration `default:"10s" help:"How long a request with its answer may take." option:"timeout"`
	// Accept are the statuses of answers. None: 2xx.
	Accept []httpcall.Status `help:"Statuses of answers; 2xx when none is given." option:"accept"`
	// Retry are the statuses that mean that it is to be asked again; all others reject, but for 404 and 410, for which there is
	// Missing. None: 401, 403, 407, 408, 425, 429, 5xx, and redirections, which are not followed.
	Retry []httpcall.Status `help:"Statuses to ask again; 401, 403, 407, 408, 425, 429, 3xx, 5xx by default." option:"retry"`
	// MaxAnswer is the longest answer, in bytes. The zero value is 1 MiB.
	MaxAnswer plugins.Size `default:"1MiB" help:"The longest answer; a longer one rejects the message." option:"max_answer"`
}

// Cache says which answers are remembered by the stage, for all of its lanes.
type Cache struct {
	// For is how long an answer is remembered; 0 remembers none.
	For plugins.Duration `help:"How long an answer is remembered; not at all when left out." option:"for,main"`
	// Missing is how long it is remembered that there is none; 0 remembers it not at all.
	Missing plugins.Duration `help:"How long it is remembered that there is none; not at all when left out." option:"missing"`
	// Size is how much is remembered, in bytes. The zero value is 16 MiB.
	Size plugins.Size `default:"16MiB" help:"How much is remembered; what was not asked for longest goes first." option:"size"`
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Asks an HTTP server about each message and adds what it answers.",
		Text: "An answer of 2xx is added to the message. 404, 410, an empty answer and one of which take gives nil mean that " +
			"there is nothing for the message; missing says what becomes of it then. Otherwise 401, 403, 407, 408, 425, " +
			"429 and 5xx try again; after a Retry-After no lane asks before the time that the server has named. All others " +
			"reject the message, as does an answer that is no JSON where JSON is needed.\n\n" +
			"With a cache, an answer is used again for requests that are the same in everything, by all lanes of this " +
			"process, and lanes that want the same at the same time wait for one request. A restart begins with an empty " +
			"one.\n\n" +
			"A lane waits for its answer, and the wait counts against the channel's timeout. A channel has as many requests " +
			"under way as it has lanes.",
		Example: "http: { url: 'https://example.org/stations/{body.station}', into: body.name, take: body.name, cache: 5m }",
		Metrics: []plugins.Metric{
			{Name: "found", Help: "Messages that an answer was added to."},
			{Name: "missing", Help: "Messages that there was nothing for."},
			{Name: "requests", Help: "Requests sent."},
			{Name: "remembered", Help: "Answers that came out of the cache."},
			{Name: "shared", Help: "Answers to a request that another lane had sent."},
			{Name: "refused", Help: "Requests answered with a status that is no answer; 404 and 410 are not counted."},
			{Name: "unreachable", Help: "Requests without an answer."},
		},
	}
}

var (
	_ plugins.Validator = Options{}
	_ plugins.Validator = Cache{}
)

// Validate refuses an address that nobody can call, templates with unknown names, and properties without a name.
func (o Options) Validate() error {
	if !o.Into.InBody() && o.Into.Prop() == "" {
		return errors.New("into: the answer is one value; give props.NAME or a place in the body")
	}

	if o.Method == Get && !o.Body.IsZero() {
		return errors.New("body: a GET has none; give the method, POST or PUT")
	}

	_, err := o.target()

	return err
}

// Validate refuses what remembers nothing.
func (c Cache) Validate() error {
	if c.For == 0 && c.Missing == 0 {
		return errors.New("for or missing is required")
	}

	return nil
}

// target is where requests go.
func (o Options) target() (*httpcall.Target, error) {
	contentType := ""
	if !o.Body.IsZero() {
		contentType = "application/json"
	}

	return httpcall.NewTarget(o.URL, o.Headers, contentType) //nolint:wrapcheck // names the option
}

// withDefaults fills in what is zero.
func (o Options) withDefaults() (Options, error) {
	if o.Method == "" {
		o.Method = Get
	}

	if o.Timeout == 0 {
		o.Timeout = plugins.Duration(10 * time.Second)
	}

	if o.MaxAnswer == 0 {
		o.MaxAnswer = 1 << 20
	}

	if o.Cache.Size == 0 {
		o.Cache.Size = 16 << 20
	}

	var err error

	if o.Take.IsZero() {
		all := "text"
		if o.Into.InBody() {
			all = "body"
		}

		o.Take, err = expression.Parse(all)
	}

	return o, err //nolint:wrapcheck // cannot be
}

// Method is how a server is asked.
type Method string

// The methods.
const (
	// Get asks by URL and headers alone.
	Get Method = http.MethodGet
	// Post and Put can send a body.
	Post Method = http.MethodPost
	Put  Method = http.MethodPut
)

var (
	_ encoding.TextUnmarshaler = (*Method)(nil)
	_ plugins.Typed            = Method("")
)

func methods() []string { return []string{string(Get), string(Post), string(Put)} }

// OptionType lists the methods.
func (Method) OptionType() (name string, values []string) { return "text", methods() }

// UnmarshalText parses GET, POST or PUT.
func (m *Method) UnmarshalText(text []byte) error {
	*m = Method(text)

	_, err := indexOf(methods(), text)

	return err
}

// Missing is what becomes of a message that there is nothing for.
type Missing uint8

// What can become of it.
const (
	// MissingReject: it is rejected.
	MissingReject Missing = iota
	// MissingPass: it goes on as it is.
	MissingPass
	// MissingDrop: it is filtered.
	MissingDrop
)

var (
	_ encoding.TextUnmarshaler = (*Missing)(nil)
	_ plugins.Typed            = Missing(0)
)

func missings() []string { return []string{"reject", "pass", "drop"} }

// OptionType lists what can become of it.
func (Missing) OptionType() (name string, values []string) { return "text", missings() }

// UnmarshalText parses a name.
func (m *Missing) UnmarshalText(text []byte) error {
	i, err := indexOf(missings(), text)
	*m = Missing(i)

	return err
}

func indexOf(names []string, text []byte) (int, error) {
	i := slices.Index(names, string(text))
	if i < 0 {
		return 0, fmt.Errorf("%q is none of %s", text, strings.Join(names, ", "))
	}

	return i, nil
}
