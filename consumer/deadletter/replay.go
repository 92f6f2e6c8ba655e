package deadletter

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/consumer"
)

// Replay says where letters go.
type Replay struct {
	// To is a topic, all of whose groups get them; empty means the group that they failed in, and no other.
	To string
	// FailedChannel lets them take only routes that lead to the channel that failed.
	FailedChannel bool
}

// Settle says what to do with a letter.
func (r Replay) Settle(l *Letter) (Settlement, error) {
	s := Settlement{Place: l.Place, Topic: r.To, Message: l.Again()}

	if r.FailedChannel {
		channel, _, ok := strings.Cut(l.Cause().Stage, "/")
		if !ok {
			return s, fmt.Errorf("%s does not say where it failed, so it can only be replayed from the start", l.Place)
		}

		s.Message.Props[consumer.PropReplayChannel] = channel
	}

	var err error
	if s.Topic == "" {
		s.Topic, err = l.Home()
	}

	return s, err
}

// Drop settles a letter without replaying it.
func Drop(l *Letter) (Settlement, error) { return Settlement{Place: l.Place}, nil }
