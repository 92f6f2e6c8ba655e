package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/millrace/millrace/consumer/deadletter"
)

// LettersThere are the dead letters at an endpoint: what [DeadLetters] do, over HTTP. They are safe for concurrent use.
type LettersThere struct{ client *Client }

// DeadLetters returns the dead letters there.
func (c *Client) DeadLetters() LettersThere { return LettersThere{client: c} }

// Visit calls visit with dead letters, page by page, and so perhaps with some that have come since it began.
func (t LettersThere) Visit(ctx context.Context, look Look, visit func(*Letter) error) error {
	seen := 0

	for _, look.Pick = range look.parts() {
		query := look.query()

		for more := true; more; {
			at := mostLetters
			if look.Max > 0 {
				at = min(look.Max-seen, mostLetters)
			}

			query.Set(maxKey, strconv.Itoa(at))

			next, err := t.page(ctx, query, func(l *Letter) error {
				seen++

				return visit(l)
			})
			if err != nil || look.Max > 0 && seen >= look.Max {
				return err
			}

			if more = next != nil; more {
				query.Set(fromKey, next.String())
			}
		}
	}

	return nil
}

// page calls visit with the letters of a page, and returns where the next one begins, nil where none does.
func (t LettersThere) page(ctx context.Context, query url.Values, visit func(*Letter) error) (*deadletter.Place, error) {
	var page LetterPage
	if err := t.client.get(ctx, "/api/v1/deadletters", query, &page); err != nil {
		return nil, err
	}

	if page.Letters == nil {
		return nil, ErrNotMillrace
	}

	for _, l := range page.Letters {
		if err := visit(l); err != nil {
			return nil, err
		}
	}

	return page.Next, nil
}

// query returns what to ask for, but how many and from where on.
func (l Look) query() url.Values {
	query := url.Values{
		topicKey: l.Topics, settledKey: {strconv.FormatBool(l.Settled)}, bodyKey: {strconv.FormatBool(l.Body)},
	}

	for _, place := range l.Letters {
		query.Add(letterKey, place.String())
	}

	if l.Where != "" {
		query.Set(whereKey, l.Where)
	}

	return query
}

// namesAtOnce is how many letters are named in an address, which servers bound.
const namesAtOnce = 50

// parts are a pick as it is asked for: a page is of letters by name or of topics.
func (p Pick) parts() []Pick {
	var parts []Pick

	for letters := range slices.Chunk(p.Letters, namesAtOnce) {
		parts = append(parts, Pick{Letters: letters, Where: p.Where})
	}

	if len(p.Topics) > 0 || len(parts) == 0 {
		parts = append(parts, Pick{Topics: p.Topics, Where: p.Where})
	}

	return parts
}

// Replay publishes dead letters again, and returns how many, also when it fails.
func (t LettersThere) Replay(ctx context.Context, r Replay) (int, error) {
	return t.settle(ctx, "replay", r.Settling, func(s Settling) any {
		r.Settling = s

		return r
	})
}

// Drop settles dead letters without replaying them, and returns how many, also when it fails.
func (t LettersThere) Drop(ctx context.Context, s Settling) (int, error) {
	return t.settle(ctx, "drop", s, func(s Settling) any { return s })
}

// Edit replays a changed dead letter, unless nothing has changed.
func (t LettersThere) Edit(ctx context.Context, e Edit) (changed bool, err error) {
	var edited Edited

	err = t.post(ctx, "edit", e, &edited)

	return edited.Changed, err
}

// settle asks until all letters are settled.
func (t LettersThere) settle(ctx context.Context, what string, s Settling, body func(Settling) any) (settled int, err error) {
	for more := true; more; {
		var done Settled

		if err := t.post(ctx, what, body(s), &done); err != nil {
			return settled, err
		}

		if done.By.IsZero() {
			return settled, ErrNotMillrace
		}

		settled += done.Settled
		more = done.More
		s.Letters, s.By = done.Letters, done.By
	}

	return settled, nil
}

func (t LettersThere) post(ctx context.Context, what string, body, receive any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}

	return t.client.ask(ctx, http.MethodPost, "/api/v1/deadletters/"+what, bytes.NewReader(text), receive)
}

// Those at a broker and those at an endpoint do the same.
var _, _ interface {
	Visit(ctx context.Context, look Look, visit func(*Letter) error) error
	Replay(ctx context.Context, r Replay) (int, error)
	Drop(ctx context.Context, s Settling) (int, error)
	Edit(ctx context.Context, e Edit) (bool, error)
} = (*DeadLetters)(nil), LettersThere{}
