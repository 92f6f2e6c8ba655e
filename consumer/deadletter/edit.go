package deadletter

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"
)

// ownPrefix is what the names of millrace's own properties begin with.
const ownPrefix = "millrace."

// Edit is what to change of a letter's message.
type Edit struct {
	// Key, Tag and Body are left as they are where they are nil.
	Key, Tag *string
	Body     *[]byte
	// Props are set, those of Remove are taken away before.
	Props  map[string]string
	Remove []string
}

// Apply changes a letter. It fails on millrace's own properties.
func (e *Edit) Apply(l *Letter) error {
	if e.Key != nil {
		l.Key = *e.Key
	}

	if e.Tag != nil {
		l.Tag = *e.Tag
	}

	if e.Body != nil {
		l.Body = *e.Body
	}

	props := make(map[string]string)
	maps.Copy(props, l.Props)

	for _, name := range e.Remove {
		if strings.HasPrefix(name, ownPrefix) {
			return ownError(name)
		}

		delete(props, name)
	}

	for name, value := range e.Props {
		if strings.HasPrefix(name, ownPrefix) {
			return ownError(name)
		}

		props[name] = value
	}

	l.Props = props

	return nil
}

func ownError(name string) error { return fmt.Errorf("the property %s is millrace's own", name) }

// OwnProps returns the properties that are the message's own, not millrace's.
func (l *Letter) OwnProps() map[string]string {
	own := maps.Clone(l.Props)
	maps.DeleteFunc(own, func(name, _ string) bool { return strings.HasPrefix(name, ownPrefix) })

	return own
}

// Replace has a letter changed and replays it, unless nothing has changed. It fails with an [*UnknownLetterError], and
// with a [*SettledError] when the letter is settled and again is not set.
func Replace(
	ctx context.Context, s Shelf, at Place, again bool, r Replay, change func(*Letter) error,
) (changed bool, err error) {
	var letter *Letter

	c := Choice{Places: []Place{at}}

	if err := c.Visit(ctx, s, func(l *Letter) error {
		letter = l

		return nil
	}); err != nil {
		return false, err
	}

	if letter.Settled && !again {
		return false, &SettledError{Place: at}
	}

	before := *letter
	before.Props = maps.Clone(letter.Props)

	if err := change(letter); err != nil {
		return false, err
	}

	if letter.Key == before.Key && letter.Tag == before.Tag && bytes.Equal(letter.Body, before.Body) &&
		maps.Equal(letter.Props, before.Props) {
		return false, nil
	}

	one, err := r.Settle(letter)
	if err != nil {
		return false, err
	}

	return true, s.Settle(ctx, at.Queue.Topic, []Settlement{one}) //nolint:wrapcheck // it says what is wrong
}
