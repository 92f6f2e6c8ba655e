package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/consumer/embedded"
)

// ErrNotServed is returned by [Connect] when nobody serves the directory.
var ErrNotServed = errors.New("control: nobody serves the broker")

// base is what requests are for; the socket is their only way.
const base = "http://broker"

// Client talks to the process that has a broker open. It is safe for concurrent use.
type Client struct{ http *http.Client }

// Connect returns a client of the process that serves a broker's directory, or [ErrNotServed].
func Connect(ctx context.Context, dir string) (*Client, error) {
	path, err := socket(dir)
	if err != nil {
		return nil, err
	}

	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}

	conn, err := dial(ctx, "", "")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotServed, err)
	}

	if err := conn.Close(); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}

	return &Client{http: &http.Client{Transport: &http.Transport{DialContext: dial}}}, nil
}

// Close ends the client's idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Describe returns what the broker holds.
func (c *Client) Describe(ctx context.Context) (embedded.Description, error) {
	var d embedded.Description

	err := c.ask(ctx, http.MethodGet, "/broker", nil, &d)

	return d, err
}

// Admin returns a client of the jobs that run on the broker. It lasts as long as c.
func (c *Client) Admin() *admin.Client { return &admin.Client{Base: base, HTTP: c.http} }

// CreateTopic makes a topic; one that is there with as many queues is left as it is.
func (c *Client) CreateTopic(ctx context.Context, name string, queues int) error {
	return c.ask(ctx, http.MethodPost, "/topics", topicRequest{Name: name, Queues: queues}, nil)
}

// Publish stores messages in a topic.
func (c *Client) Publish(ctx context.Context, topic string, messages []Message) error {
	var body bytes.Buffer

	encoder := json.NewEncoder(&body)
	for i := range messages {
		if err := encoder.Encode(&messages[i]); err != nil {
			return fmt.Errorf("control: %w", err)
		}
	}

	return c.ask(ctx, http.MethodPost, "/messages?"+url.Values{"topic": {topic}}.Encode(), &body, nil)
}

// Reset makes a group go on elsewhere, and returns what was moved, also when it fails on the way.
func (c *Client) Reset(ctx context.Context, r Reset) ([]Moved, error) {
	var moved []Moved

	err := c.ask(ctx, http.MethodPost, "/offsets",
		resetRequest{Group: r.Group, Topic: r.Topic, Queue: r.Queue, To: r.To.String()}, &moved)

	return moved, err
}

// Read calls visit with the messages of a topic, until the end, an error, or the end of ctx.
func (c *Client) Read(ctx context.Context, r Read, visit func(*Message) error) (err error) {
	query := url.Values{"topic": {r.Topic}, "from": {r.From.String()}, "follow": {strconv.FormatBool(r.Follow)}}

	response, err := c.do(ctx, http.MethodGet, "/messages?"+query.Encode(), nil)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, response.Body.Close()) }()

	decoder := json.NewDecoder(bufio.NewReader(response.Body))

	for {
		var l line

		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("control: %w", err)
		}

		if l.Error != "" {
			return errors.New(l.Error)
		}

		if l.Message == nil {
			continue
		}

		if err := visit(l.Message); err != nil {
			return err
		}
	}
}

// ask sends a value, or a body that is made already, and reads the answer into another.
func (c *Client) ask(ctx context.Context, method, path string, send, receive any) (err error) {
	var body io.Reader

	switch send := send.(type) {
	case nil:
	case io.Reader:
		body = send
	default:
		text, err := json.Marshal(send)
		if err != nil {
			return fmt.Errorf("control: %w", err)
		}

		body = bytes.NewReader(text)
	}

	response, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, response.Body.Close()) }()

	if receive == nil {
		return nil
	}

	if err := json.NewDecoder(response.Body).Decode(receive); err != nil {
		return fmt.Errorf("control: %w", err)
	}

	return nil
}

// do sends a request and fails with what the server said, in its words.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}

	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}

	if response.StatusCode == http.StatusOK {
		return response, nil
	}

	var p admin.Problem
	if err := json.NewDecoder(response.Body).Decode(&p); err != nil || p.Error == "" {
		p.Error = response.Status
	}

	return nil, errors.Join(errors.New(p.Error), response.Body.Close())
}
