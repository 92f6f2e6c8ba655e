package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// What is wrong with an endpoint that a [Client] asks.
var (
	// ErrUnreachable is returned when nobody answers there.
	ErrUnreachable = errors.New("admin: the endpoint cannot be reached")
	// ErrToken is returned when the endpoint needs a token, and there is none or another one.
	ErrToken = errors.New("admin: the endpoint needs its token")
	// ErrNotMillrace is returned when something else answers there.
	ErrNotMillrace = errors.New("admin: what answers is no admin endpoint of millrace")
)

// Client asks an endpoint. It is safe for concurrent use as its fields are not changed.
type Client struct {
	// Base is the endpoint's URL, such as http://127.0.0.1:7411.
	Base string
	// Token is sent along unless it is empty.
	Token string
	// HTTP makes the requests; nil means the default client.
	HTTP *http.Client
}

// maxAnswer is the most of an answer that is read.
const maxAnswer = 64 << 20

// Status returns the state of the jobs, or of one when it is named.
func (c *Client) Status(ctx context.Context, job string) (*Status, error) {
	s := new(Status)

	err := c.get(ctx, "/api/v1/status", url.Values{jobKey: {job}}, s)
	if err == nil && s.Jobs == nil {
		err = ErrNotMillrace
	}

	return s, err
}

// Why returns why queues are where they are: those that are named, by themselves or by their topic, or all.
func (c *Client) Why(ctx context.Context, queues ...string) (*Answers, error) {
	a := new(Answers)

	err := c.get(ctx, "/api/v1/why", url.Values{queueKey: queues}, a)
	if err == nil && a.Jobs == nil {
		err = ErrNotMillrace
	}

	return a, err
}

// Pause stops pulling from a queue; why is shown to those who ask why it stands.
func (c *Client) Pause(ctx context.Context, job string, q pipeline.Queue, why string) error {
	return c.change(ctx, job, "pause", Change{Queue: q, Why: why})
}

// Resume takes a pause back.
func (c *Client) Resume(ctx context.Context, job string, q pipeline.Queue) error {
	return c.change(ctx, job, "resume", Change{Queue: q})
}

// Seek makes a queue go on at another offset. It returns when the offset is committed.
func (c *Client) Seek(ctx context.Context, job string, q pipeline.Queue, o pipeline.Offset) error {
	return c.change(ctx, job, "seek", Change{Queue: q, Offset: &o})
}

// Drain begins the end of a job and does not wait for it. A budget of 0 means the job's own.
func (c *Client) Drain(ctx context.Context, job string, budget time.Duration) error {
	return c.change(ctx, job, "drain", drainOf(budget))
}

// DrainAndWait ends a job, and returns how it has ended. A budget of 0 means the job's own.
func (c *Client) DrainAndWait(ctx context.Context, job string, budget time.Duration) (*Drained, error) {
	change := drainOf(budget)
	change.Wait = longestWait.String()

	for {
		var drained Drained // asking again changes nothing: a drain can only be made shorter

		if err := c.post(ctx, job, "drain", change, &drained); err != nil {
			return nil, err
		}

		if !drained.Done {
			return nil, ErrNotMillrace
		}

		if drained.Stopped {
			return &drained, nil
		}
	}
}

func drainOf(budget time.Duration) (c Change) {
	if budget > 0 {
		c.Budget = budget.String()
	}

	return c
}

func (c *Client) change(ctx context.Context, job, what string, change Change) error {
	var done Done

	err := c.post(ctx, job, what, change, &done)
	if err == nil && !done.Done {
		err = ErrNotMillrace
	}

	return err
}

func (c *Client) post(ctx context.Context, job, what string, change Change, receive any) error {
	body, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}

	return c.ask(ctx, http.MethodPost, "/api/v1/jobs/"+url.PathEscape(job)+"/"+what, bytes.NewReader(body), receive)
}

func (c *Client) get(ctx context.Context, path string, query url.Values, receive any) error {
	return c.ask(ctx, http.MethodGet, path+"?"+query.Encode(), http.NoBody, receive)
}

// ask makes a request, and reads its answer.
func (c *Client) ask(ctx context.Context, method, path string, body io.Reader, receive any) (err error) {
	request, err := http.NewRequestWithContext(ctx, method, c.Base+path, body)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}

	if method != http.MethodGet {
		request.Header.Set("Content-Type", "application/json")
	}

	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}

	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}

	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}

	defer func() { err = errors.Join(err, response.Body.Close()) }()

	decoder := json.NewDecoder(io.LimitReader(response.Body, maxAnswer))

	if response.StatusCode != http.StatusOK {
		return refusal(response, decoder)
	}

	err = decoder.Decode(receive)

	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("admin: the answer breaks off: %w", err)
	default:
		return fmt.Errorf("%w: %w", ErrNotMillrace, err)
	}
}

// refusal returns what an answer without success says.
func refusal(response *http.Response, decoder *json.Decoder) error {
	var p Problem
	if err := decoder.Decode(&p); err != nil || p.Error == "" {
		return fmt.Errorf("%w: it answers %s", ErrNotMillrace, response.Status)
	}

	if response.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("%w: %s", ErrToken, p.Error)
	}

	return errors.New(p.Error)
}
