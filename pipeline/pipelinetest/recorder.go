package pipelinetest

import (
	"errors"

	"github.com/millrace/millrace/pipeline"
)

// errNil is what a Recorder answers to a nil message, as a channel does.
var errNil = errors.New("pipelinetest: emitted a nil message")

// Recorder stands for the stage after the one under test: pass its Emit to Transform. The zero value takes everything.
// It belongs to one goroutine, as an Emit does.
type Recorder struct {
	// Messages are the ones that were taken, in order.
	Messages []*pipeline.Message
	// Err is what Emit answers once it has taken After messages; nil means that it takes all.
	Err   error
	After int
	// Refused counts the messages that were not taken.
	Refused int
}

// Emit takes a message, or refuses it with Err, or since it is nil.
func (r *Recorder) Emit(m *pipeline.Message) error {
	switch {
	case m == nil:
		r.Refused++

		return errNil
	case r.Err != nil && len(r.Messages) >= r.After:
		r.Refused++

		return r.Err
	default:
		r.Messages = append(r.Messages, m)

		return nil
	}
}
