package exec

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/millrace/millrace/pipeline"
)

// result is what a program made of one message: a failure or outputs.
type result struct {
	outs []*pipeline.Message
	err  error
}

// reply reads what a program answers to a batch. Nothing in it is trusted: lengths are compared with what there is, nothing
// is nested deeper than the protocol says, and a name that it does not know is a mistake.
type reply struct {
	d    *msgpack.Decoder
	most int
}

// readReply returns a result for each message of the batch. Outputs are copies of the message, or the message itself where
// it is the only output and goes on as it is.
func readReply(payload []byte, number uint64, batch []*pipeline.Message, most int) ([]result, error) {
	r := reply{d: msgpack.NewDecoder(bytes.NewReader(payload)), most: most}

	if err := r.array(3); err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}

	kind, err := r.d.DecodeString()
	if err != nil || kind != "done" {
		return nil, fmt.Errorf("the answer is %.20q, want done", kind)
	}

	got, err := r.d.DecodeUint64()
	if err != nil || got != number {
		return nil, fmt.Errorf("the answer is for batch %d, this is %d", got, number)
	}

	if err := r.array(len(batch)); err != nil {
		return nil, fmt.Errorf("the answer to %d messages: %w", len(batch), err)
	}

	results := make([]result, len(batch))

	for i, m := range batch {
		if results[i], err = r.result(m); err != nil {
			return nil, fmt.Errorf("the result of message %d: %w", i, err)
		}
	}

	return results, nil
}

func (r *reply) array(want int) error {
	n, err := r.d.DecodeArrayLen()
	if err != nil {
		return err //nolint:wrapcheck // the caller puts the place around it
	}

	if n != want {
		return fmt.Errorf("%d elements, want %d", n, want)
	}

	return nil
}

func (r *reply) result(m *pipeline.Message) (result, error) {
	code, err := r.d.PeekCode()
	if err != nil {
		return result{}, err //nolint:wrapcheck // the caller puts the place around it
	}

	switch {
	case code == msgpcode.Nil:
		return result{outs: []*pipeline.Message{m}}, r.d.DecodeNil() //nolint:wrapcheck // as above
	case msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32:
		failure, err := r.failure()

		return result{err: failure}, err
	}

	n, err := r.d.DecodeArrayLen()
	if err != nil {
		return result{}, err //nolint:wrapcheck // as above
	}

	if n > r.most {
		return result{}, fmt.Errorf("%d messages made of one; the option most allows more than %d", n, r.most)
	}

	var outs []*pipeline.Message

	for range n {
		out, err := r.output(m)
		if err != nil {
			return result{}, err
		}

		outs = append(outs, out)
	}

	return result{outs: outs}, nil
}

// failure reads why a message is refused.
func (r *reply) failure() (failure, wrong error) {
	text, reject, delay := "refused by the program", false, time.Duration(0)

	err := r.fields(func(name string) (err error) {
		switch name {
		case "error":
			text, err = r.d.DecodeString()
		case "reject":
			reject, err = r.d.DecodeBool()
		case "retry_ms":
			var ms uint32

			ms, err = r.d.DecodeUint32()
			delay = time.Duration(ms) * time.Millisecond
		default:
			err = fmt.Errorf("a failure has no %.20q", name)
		}

		return err
	})
	if err != nil {
		return nil, err
	}

	const longest = 4 << 10
	if len(text) > longest {
		text = text[:longest] + "…"
	}

	failure = errors.New(strings.ToValidUTF8(text, "\uFFFD"))

	switch {
	case reject:
		return pipeline.Reject(failure), nil
	case delay > 0:
		return pipeline.RetryAfter(failure, delay), nil
	default:
		return failure, nil
	}
}

// output reads what an output has that its message has not.
func (r *reply) output(m *pipeline.Message) (*pipeline.Message, error) {
	out := m.Clone()

	code, err := r.d.PeekCode()
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller puts the place around it
	}

	if code == msgpcode.Nil {
		return out, r.d.DecodeNil() //nolint:wrapcheck // as above
	}

	return out, r.fields(func(name string) (err error) {
		switch name {
		case "body":
			out.Body, err = r.d.DecodeBytes()
		case "id":
			out.ID, err = r.d.DecodeString()
		case "key":
			out.Key, err = r.d.DecodeString()
		case "tag":
			out.Tag, err = r.d.DecodeString()
		case "props":
			out.Props = nil
			err = r.fields(func(name string) error {
				value, err := r.d.DecodeString()
				out.SetProp(name, value)

				return err //nolint:wrapcheck // as above
			})
		default:
			err = fmt.Errorf("a message has no %.20q", name)
		}

		return err
	})
}

// fields reads a map.
func (r *reply) fields(value func(name string) error) error {
	n, err := r.d.DecodeMapLen()
	if err != nil {
		return err //nolint:wrapcheck // the caller puts the place around it
	}

	for range n {
		name, err := r.d.DecodeString()
		if err != nil {
			return err //nolint:wrapcheck // as above
		}

		if err := value(name); err != nil {
			return fmt.Errorf("%.20q: %w", name, err)
		}
	}

	return nil
}
