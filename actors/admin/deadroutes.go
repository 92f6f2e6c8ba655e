package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/millrace/millrace/consumer/deadletter"
)

const (
	// lookTime is how long dead letters are looked for in one request, settleTime how long they are settled in one; the rest of
	// a request's time is for what had begun by then.
	lookTime   = 8 * time.Second
	settleTime = 8 * time.Second
	// slowestRate is one letter in the time that a request has.
	slowestRate = 0.1
	// pageLetters is how many letters are shown when nobody says it, mostLetters how many may be asked for.
	pageLetters = 100
	mostLetters = 1000
)

// The names of parameters.
const (
	letterKey  = "letter"
	topicKey   = "topic"
	whereKey   = "where"
	settledKey = "settled"
	bodyKey    = "body"
	maxKey     = "max"
	fromKey    = "from"
)

// letters returns the dead letters that are served.
func (h *handler) letters() (*DeadLetters, error) {
	if h.o.DeadLetters == nil {
		return nil, failf(statusNotFound, "no dead letters are served here; "+
			"`millrace run --admin` does, and programs that give admin.Options.DeadLetters")
	}

	return h.o.DeadLetters, nil
}

// deadLetters answers with a page of dead letters.
func (h *handler) deadLetters(r *http.Request) (any, error) {
	letters, err := h.letters()
	if err != nil {
		return nil, err
	}

	look, from, err := lookOf(r.URL.Query())
	if err != nil {
		return nil, err
	}

	page, err := letters.page(r.Context(), look, from, time.Now().Add(lookTime), h.o.Redact)

	return page, letterError(err, 0)
}

// lookOf reads what is to be shown, and from where on.
func lookOf(query url.Values) (look Look, from *deadletter.Place, err error) {
	for name := range query {
		switch name {
		case letterKey, topicKey, whereKey, settledKey, bodyKey, maxKey, fromKey:
		default:
			return look, nil, failf(statusBad,
				"there is no parameter %q; there are: body, from, letter, max, settled, topic, where", name)
		}
	}

	look = Look{Pick: Pick{Topics: query[topicKey], Where: query.Get(whereKey)}, Max: pageLetters}

	for _, text := range query[letterKey] {
		place, err := placeOf(letterKey, text)
		if err != nil {
			return look, nil, err
		}

		look.Letters = append(look.Letters, place)
	}

	if len(look.Letters) > 0 && len(look.Topics) > 0 {
		return look, nil, failf(statusBad, "ask for letters or for topics, not for both at once")
	}

	for name, to := range map[string]*bool{settledKey: &look.Settled, bodyKey: &look.Body} {
		if text := query.Get(name); text != "" {
			if *to, err = strconv.ParseBool(text); err != nil {
				return look, nil, failf(statusBad, "%s is %q; it is true or false", name, text)
			}
		}
	}

	if text := query.Get(maxKey); text != "" {
		if look.Max, err = strconv.Atoi(text); err != nil || look.Max < 1 || look.Max > mostLetters {
			return look, nil, failf(statusBad, "max is %q; it is a number from 1 to %d", text, mostLetters)
		}
	}

	if text := query.Get(fromKey); text != "" {
		place, err := placeOf(fromKey, text)

		return look, &place, err
	}

	return look, nil, nil
}

func placeOf(name, text string) (deadletter.Place, error) {
	place, ok := deadletter.ParsePlace(text)
	if !ok {
		return place, failf(statusBad, "%s is %q, which is no letter; write it as TOPIC/QUEUE/OFFSET", name, text)
	}

	return place, nil
}

// replayLetters publishes dead letters again, for as long as a request may take.
func (h *handler) replayLetters(r *http.Request) (any, error) {
	var replay Replay

	return h.settle(r, &replay, func(d *DeadLetters, end time.Time) (Settled, error) {
		if rate := replay.Rate; rate != nil && *rate > 0 && *rate < slowestRate {
			return Settled{}, failf(statusBad,
				"the rate is %g, and requests end before that; use one of at least %g, or 0 for no limit", *rate, slowestRate)
		}

		return d.replay(r.Context(), replay, end)
	})
}

// dropLetters settles dead letters without replaying them.
func (h *handler) dropLetters(r *http.Request) (any, error) {
	var drop Settling

	return h.settle(r, &drop, func(d *DeadLetters, end time.Time) (Settled, error) { return d.drop(r.Context(), drop, end) })
}

// settle reads what is asked for and does it.
func (h *handler) settle(r *http.Request, asked any, do func(*DeadLetters, time.Time) (Settled, error)) (any, error) {
	letters, err := h.lettersFor(r, asked)
	if err != nil {
		return nil, err
	}

	settled, err := do(letters, time.Now().Add(settleTime))

	return settled, letterError(err, settled.Settled)
}

// editLetter replays a dead letter that is changed.
func (h *handler) editLetter(r *http.Request) (any, error) {
	var e Edit

	letters, err := h.lettersFor(r, &e)
	if err != nil {
		return nil, err
	}

	switch {
	case e.Letter == deadletter.Place{}:
		return nil, failf(statusBad, `the body names no letter; write one like {"letter": "payments-dead/0/12"}`)
	case e.Text != nil && e.Bytes != nil:
		return nil, failf(statusBad, "a message has one body: give body for text, or else bodyBase64")
	}

	changed, err := letters.Edit(r.Context(), e)

	return Edited{Changed: changed}, letterError(err, 0)
}

// lettersFor returns the dead letters to change, and reads what is asked for.
func (h *handler) lettersFor(r *http.Request, asked any) (*DeadLetters, error) {
	letters, err := h.letters()
	if err != nil {
		return nil, err
	}

	if err := decode(r, asked); err != nil {
		return nil, err
	}

	steady := *letters
	steady.Shelf = steadyShelf{letters.Shelf}

	return &steady, nil
}

// steadyShelf settles what it has begun to settle though whoever asked for it has gone: else letters would be published and not
// settled.
type steadyShelf struct{ deadletter.Shelf }

func (s steadyShelf) Settle(ctx context.Context, topic string, all []deadletter.Settlement) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()

	return s.Shelf.Settle(ctx, topic, all) //nolint:wrapcheck // a shelf as the other
}

// letterError gives an error its status, and says how many letters were settled before.
func letterError(err error, settled int) error {
	if err == nil {
		return nil
	}

	status, text := statusOf(err), err.Error()

	if _, ok := errors.AsType[*deadletter.UnknownLetterError](err); ok {
		status = statusNotFound
	}

	if _, ok := errors.AsType[*deadletter.SettledError](err); ok {
		status = http.StatusConflict
		text += `; "again": true (--again) replays it nevertheless`
	}

	if errors.Is(err, context.DeadlineExceeded) {
		status = http.StatusGatewayTimeout
		text = "it took too long; ask for less: by letters or a topic, and without where: " + text
	}

	if settled > 0 {
		text += "; " + strconv.Itoa(settled) + " were settled before"
	}

	return failf(status, "%s", text)
}
