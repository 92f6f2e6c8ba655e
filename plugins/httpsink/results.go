package httpsink

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/expression"
)

// ResultError is what the answer to an accepted request says of one message that was not taken.
type ResultError struct {
	// Status is as that of a request of its own, Reason what else the answer says; empty when nothing.
	Status int
	Reason string
}

var _ error = (*ResultError)(nil)

// Error says what was answered.
func (e *ResultError) Error() string {
	text := fmt.Sprintf("answered %d %s for this message", e.Status, http.StatusText(e.Status))
	if e.Reason != "" {
		text += fmt.Sprintf(": %.200q", e.Reason)
	}

	return text
}

// judge fails the messages of a group that an accepted answer says were not taken.
func (w *write) judge(g *group, answer []byte) {
	if w.sink.options.Results.IsZero() {
		w.sink.messages.Add(int64(len(g.indexes)))

		return
	}

	results, err := w.results(answer, len(g.indexes))
	if err != nil {
		// Nobody knows what became of them; sending them again is what loses none.
		w.fail(g, fmt.Errorf("http: results of the answer %.200q: %w", answer, err))

		return
	}

	for n, i := range g.indexes {
		result := results[n]
		if result == nil {
			w.sink.messages.Add(1)

			continue
		}

		err := w.sink.client.Outcome(result.Status, result)
		if err == nil {
			w.sink.messages.Add(1)

			continue
		}

		w.sink.declined.Add(1)
		w.failures.Fail(i, fmt.Errorf("http: %s: %w", g.place(), err))

		if overloaded(result.Status) && !pipeline.IsRejected(err) {
			w.down = err
		}
	}
}

// results evaluates what an answer says of each of n messages; nil for those that it says nothing of.
func (w *write) results(answer []byte, n int) ([]*ResultError, error) {
	var scope expression.Scope

	scope.Reset(&pipeline.Message{Body: answer})

	v, err := w.sink.options.Results.Eval(&scope)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names it
	}

	results := make([]*ResultError, n)
	all := v.Any()

	if w.sink.options.Batch == BatchNone {
		results[0], err = resultOf(all)

		return results, err
	}

	switch all := all.(type) {
	case nil:
		return results, nil
	case []any:
		if len(all) != n {
			return nil, fmt.Errorf("there are %d for %d messages", len(all), n)
		}

		for i := range all {
			if results[i], err = resultOf(all[i]); err != nil {
				return nil, fmt.Errorf("of message %d: %w", i, err)
			}
		}

		return results, nil
	case map[string]any:
		for number, one := range all {
			i, err := strconv.Atoi(number)
			if err != nil || i < 0 || i >= n {
				return nil, fmt.Errorf("%.20q is no number of one of %d messages, which begin with 0", number, n)
			}

			if results[i], err = resultOf(one); err != nil {
				return nil, fmt.Errorf("of message %d: %w", i, err)
			}
		}

		return results, nil
	default:
		return nil, fmt.Errorf("they are a %T, neither a list nor a table", all)
	}
}

// resultOf returns what one result says: nil and true that the message was taken, a number the status, and a table the status
// with a reason.
func resultOf(v any) (*ResultError, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil //nolint:nilnil // nothing was said
	case bool:
		if v {
			return nil, nil //nolint:nilnil // it was taken
		}
	case int:
		if v >= 100 && v <= 599 {
			return &ResultError{Status: v}, nil
		}
	case map[string]any:
		status, ok := v["status"].(int)
		if !ok || status < 100 || status > 599 {
			break
		}

		r := &ResultError{Status: status}
		if reason := v["reason"]; reason != nil {
			r.Reason = fmt.Sprint(reason)
		}

		return r, nil
	}

	return nil, fmt.Errorf("%.100q is neither a status nor a table with a status; nil and true stand for taken", fmt.Sprint(v))
}
