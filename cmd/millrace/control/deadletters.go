package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/deadletter"
)

// letterLine is one line of a read of dead letters: a letter, or why there are no more.
type letterLine struct {
	Letter *deadletter.Letter `json:"letter,omitempty"`
	Error  string             `json:"error,omitempty"`
}

// settlement settles dead letters of a topic.
type settlement struct {
	Topic string                  `json:"topic"`
	All   []deadletter.Settlement `json:"all"`
}

// DeadTopics returns the topics that hold dead letters.
func (c *Client) DeadTopics(ctx context.Context) ([]string, error) {
	var topics []string

	err := c.ask(ctx, http.MethodGet, "/deadletters/topics", nil, &topics)

	return topics, err
}

// DeadLetters calls visit with dead letters, until the end or an error.
func (c *Client) DeadLetters(ctx context.Context, q deadletter.Query, visit func(*deadletter.Letter) error) (err error) {
	query := url.Values{"topic": {q.Topic}, "settled": {strconv.FormatBool(q.Settled)}}
	if q.At != nil {
		query.Set("at", q.At.String())
	}

	if q.From != nil {
		query.Set("from", q.From.String())
	}

	response, err := c.do(ctx, http.MethodGet, "/deadletters?"+query.Encode(), nil)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, response.Body.Close()) }()

	decoder := json.NewDecoder(bufio.NewReader(response.Body))

	for {
		var l letterLine

		if err := decoder.Decode(&l); errors.Is(err, io.EOF) { //nolint:musttag,nolintlint // a place is a text
			return nil
		} else if err != nil {
			return fmt.Errorf("control: %w", err)
		}

		if l.Error != "" {
			return errors.New(l.Error)
		}

		if l.Letter == nil {
			continue
		}

		if err := visit(l.Letter); err != nil {
			return err
		}
	}
}

// Settle publishes dead letters again or drops them, and remembers that.
func (c *Client) Settle(ctx context.Context, topic string, all []deadletter.Settlement) error {
	return c.ask(ctx, http.MethodPost, "/deadletters", settlement{Topic: topic, All: all}, nil)
}

func (s *Server) deadTopics(r *http.Request) (any, error) {
	topics := []string{}

	for _, topic := range s.broker.Topics() {
		if strings.HasPrefix(topic, consumer.RetryTopic("")) {
			continue
		}

		holds, err := s.desk.Holds(r.Context(), topic)
		if err != nil {
			return nil, err //nolint:wrapcheck // the client says where it comes from
		}

		if holds {
			topics = append(topics, topic)
		}
	}

	return topics, nil
}

// deadLetters streams dead letters as lines of JSON. A failure on the way is a last line with an error.
func (s *Server) deadLetters(w http.ResponseWriter, r *http.Request) {
	q := deadletter.Query{Topic: r.URL.Query().Get("topic")}
	q.Settled, _ = strconv.ParseBool(r.URL.Query().Get("settled"))

	for name, place := range map[string]**deadletter.Place{"at": &q.At, "from": &q.From} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}

		*place = new(deadletter.Place)
		if err := (*place).UnmarshalText([]byte(text)); err != nil {
			fail(w, err)

			return
		}
	}

	w.Header().Set("Content-Type", "application/jsonl")

	encoder := json.NewEncoder(w)

	err := s.desk.DeadLetters(r.Context(), q, func(l *deadletter.Letter) error {
		return encoder.Encode(letterLine{Letter: l}) //nolint:musttag,nolintlint // as above
	})
	if err != nil && r.Context().Err() == nil {
		_ = encoder.Encode(letterLine{Error: err.Error()}) //nolint:errchkjson,musttag,nolintlint // nobody is left to be told
	}
}

func (s *Server) settle(r *http.Request) (any, error) {
	var request settlement
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil { //nolint:musttag,nolintlint // as above
		return nil, fmt.Errorf("control: %w", err)
	}

	return nil, s.desk.Settle(r.Context(), request.Topic, request.All) //nolint:wrapcheck // the client says it in its words
}
