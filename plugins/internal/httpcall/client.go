// Package httpcall calls HTTP servers for the plugins that do: with bounds on time and on what an answer may hold, and with
// failures as the runtime understands them.
package httpcall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// The bounds that nobody has needed to choose; guesses.
const (
	// maxHeader is how many bytes the headers of an answer may have.
	maxHeader = 256 << 10
	// shown is how much of a refusal's text an error shows, in bytes.
	shown = 200
	// longest is the longest delay that a server's Retry-After is believed.
	longest = 24 * time.Hour
	// idle is how many connections to a server are kept for later, and keep for how long.
	idle = 16
	keep = 90 * time.Second
)

// Client calls HTTP servers. It is safe for concurrent use, and closed by Close.
type Client struct {
	config    Config
	http      http.Client
	transport *http.Transport
}

// New returns a client. It reads the files that the configuration names.
func New(c Config) (*Client, error) {
	conf, err := c.TLS.Config()
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}

	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		TLSClientConfig:        conf,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        keep,
		MaxResponseHeaderBytes: maxHeader,
	}

	return &Client{config: c, transport: transport, http: http.Client{
		Transport: transport,
		// Following one would send secrets to whoever the server names, and could turn a POST into a GET.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close closes the connections that are idle. Closing twice does nothing.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Request is one call.
type Request struct {
	Method, URL string
	// Headers are added to the configured ones, which win.
	Headers map[string]string
	Body    []byte
	// WantBody reads the whole of a good answer; otherwise it is thrown away.
	WantBody bool
}

// Do sends a request and returns the body of a good answer, if wanted. It fails with a [*StatusError] when the server answered
// anything else, marked by [pipeline.RetryAfter] or [pipeline.Reject] where that is due, with one that is rejected when the
// answer or the request is impossible, with the context's error when that has ended, and otherwise with an
// [*UnreachableError].
func (c *Client) Do(ctx context.Context, r Request) ([]byte, error) {
	call := ctx

	if c.config.Timeout > 0 {
		var cancel context.CancelFunc

		call, cancel = context.WithTimeout(ctx, c.config.Timeout)
		defer cancel()
	}

	request, err := c.request(call, r)
	if err != nil {
		return nil, pipeline.Reject(err)
	}

	place := r.Method + " " + Place(request.URL)

	answer, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreachable(ctx, call, place, err)
	}
	defer func() { _ = answer.Body.Close() }()

	if !c.accepts(answer.StatusCode) {
		return nil, c.refused(place, answer)
	}

	if !r.WantBody {
		_, _ = io.CopyN(io.Discard, answer.Body, shown) // what is short is read, so that its connection can be used again

		return nil, nil
	}

	body, err := io.ReadAll(io.LimitReader(answer.Body, c.config.MaxAnswer+1))

	switch {
	case err != nil:
		return nil, c.unreachable(ctx, call, place, err)
	case int64(len(body)) > c.config.MaxAnswer:
		return nil, pipeline.Reject(fmt.Errorf("%s: the answer has more than %d bytes; max_answer allows more",
			place, c.config.MaxAnswer))
	}

	return body, nil
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, errors.New("the url is none") // the error of net/url shows all of it, secrets too
	}

	if err := CheckURL(request.URL); err != nil {
		return nil, err
	}

	for _, headers := range []map[string]string{r.Headers, c.config.Headers} {
		for name, value := range headers {
			request.Header.Set(name, value)
		}
	}

	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
	}

	c.config.Auth.sign(request)

	return request, nil
}

// CheckURL refuses what cannot be called.
func CheckURL(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is no address to call; it begins with http:// or https:// and a server's name", Place(u))
	}

	return nil
}

// Place is a URL without what may be secret in it: user, password and query.
func Place(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, Opaque: u.Opaque}).String()
}

// PlaceOf is [Place] of a text; empty when that is no URL.
func PlaceOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}

	return Place(u)
}

func (c *Client) accepts(status int) bool {
	if c.config.Accept == nil {
		return status >= 200 && status < 300
	}

	return among(status, c.config.Accept)
}

// Retries reports whether the next attempt may come out better than one that was answered with status.
func (c *Client) Retries(status int) bool {
	if c.config.Retry != nil {
		return among(status, c.config.Retry)
	}

	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		// Who we are is no fault of a message: a token has expired, or a right is missing.
		http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return true
	default:
		return status < 400 || status >= 500
	}
}

// Outcome is the error of something that a server has answered with status about, nil when it accepts it.
func (c *Client) Outcome(status int, err error) error {
	switch {
	case c.accepts(status):
		return nil
	case c.Retries(status):
		return err
	default:
		return pipeline.Reject(err)
	}
}

func (c *Client) refused(place string, answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, shown))

	err := &StatusError{
		Place: place, Status: answer.StatusCode, Text: strings.TrimSpace(string(text)),
	}

	if to, parseErr := answer.Location(); parseErr == nil {
		err.Location = Place(to)
	}

	if !c.Retries(answer.StatusCode) {
		return pipeline.Reject(err)
	}

	if delay := retryAfter(answer.Header.Get("Retry-After"), time.Now()); delay > 0 {
		return pipeline.RetryAfter(err, delay)
	}

	return err
}

// retryAfter reads the header, seconds or a time; 0 when it says nothing.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(strings.TrimSpace(header), 10, 32); err == nil {
		return max(0, min(time.Duration(seconds)*time.Second, longest))
	}

	if at, err := http.ParseTime(header); err == nil {
		return max(0, min(at.Sub(now), longest))
	}

	return 0
}

// unreachable tells why there was no answer: the caller's context, the time-out, or the network.
func (c *Client) unreachable(ctx, call context.Context, place string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", place, ctx.Err())
	}

	if call.Err() != nil {
		return &UnreachableError{Place: place, Err: fmt.Errorf("no answer within %v, the timeout", c.config.Timeout)}
	}

	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // without the URL, whose query may be secret
	}

	return &UnreachableError{Place: place, Err: err}
}
