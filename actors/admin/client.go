package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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

	return s, c.get(ctx, "/api/v1/status", url.Values{jobKey: {job}}, s)
}

// Why returns why queues are where they are: those that are named, by themselves or by their topic, or all.
func (c *Client) Why(ctx context.Context, queues ...string) (*Answers, error) {
	a := new(Answers)

	return a, c.get(ctx, "/api/v1/why", url.Values{"queue": queues}, a)
}

func (c *Client) get(ctx context.Context, path string, query url.Values, receive any) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Base+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
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
		return fmt.Errorf("admin: %w", err)
	}

	defer func() { err = errors.Join(err, response.Body.Close()) }()

	decoder := json.NewDecoder(io.LimitReader(response.Body, maxAnswer))

	if response.StatusCode != http.StatusOK {
		var p Problem
		if err := decoder.Decode(&p); err != nil || p.Error == "" {
			p.Error = "the endpoint answers " + response.Status
		}

		return errors.New(p.Error)
	}

	if err := decoder.Decode(receive); err != nil {
		return fmt.Errorf("admin: the answer: %w", err)
	}

	return nil
}
