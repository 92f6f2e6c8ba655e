package control

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/deadletter"
	"github.com/millrace/millrace/plugins/expression"
)

// ParseWhere compiles an expression that picks dead letters. What it returns is not safe for concurrent use.
func ParseWhere(text string) (func(*deadletter.Letter) (bool, error), error) {
	where, err := expression.ParseConditionOn(text, names(&deadletter.Letter{}))
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong, and callers where
	}

	var scope expression.Scope

	return func(l *deadletter.Letter) (bool, error) {
		scope.Reset(l.Pipeline())
		scope.Know(names(l))

		holds, err := where.Holds(&scope)
		if err != nil {
			return false, fmt.Errorf("where does not suit %s: %w", l.Place, err)
		}

		return holds, nil
	}, nil
}

// names returns what an expression knows of a letter.
func names(l *deadletter.Letter) expression.Names {
	cause := l.Cause()
	channel, _, _ := strings.Cut(cause.Stage, "/")

	return expression.Names{
		"stage": cause.Stage, "channel": channel, "error": cause.Error, "stack": cause.Stack, "group": cause.Group,
		"topic": l.Topic(), "attempts": cause.Deliveries, "replays": l.Replays(),
		"died": cause.Time, "age": age(cause),
	}
}

// age is how long a letter has been dead; 0 when that is not known.
func age(c consumer.Cause) time.Duration {
	if c.Time.IsZero() {
		return 0
	}

	return max(time.Since(c.Time), 0)
}
