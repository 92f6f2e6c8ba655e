package expression

import (
	"errors"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/document"
)

// Scope is the message that expressions are evaluated for. It belongs to one goroutine, and the message must not change between
// [Scope.Reset] and the last use of a value. The zero value is ready for a Reset.
type Scope struct {
	m   *pipeline.Message
	doc *document.Document
	err error
	env map[string]any // of programs
	// more are the values of Names.
	more map[string]any
}

// Reset makes m the message.
func (s *Scope) Reset(m *pipeline.Message) { s.m, s.doc, s.err = m, nil, nil }

// Know gives the [Names] of expressions their values until it is called again. A name without one is nil.
func (s *Scope) Know(values map[string]any) { s.more = values }

// Body returns the document in the body, which is parsed when the message has none yet. It fails with a [*document.SyntaxError].
func (s *Scope) Body() (*document.Document, error) {
	if s.doc == nil {
		d, err := document.Of(s.m)
		if err != nil {
			return nil, err //nolint:wrapcheck // names all that there is to name
		}

		s.doc = d
	}

	return s.doc, nil
}

// get returns what stands at a path of the body.
func (s *Scope) get(p document.Path) Value {
	d, err := s.Body()
	if err != nil {
		return s.fail(err)
	}

	return fromDocument(d.Get(p))
}

// fail keeps the first error, which makes the whole expression fail.
func (s *Scope) fail(err error) Value {
	if s.err == nil {
		s.err = err
	}

	return Value{}
}

func (s *Scope) failText(problem string) Value { return s.fail(errors.New(problem)) }

// fault returns the error and forgets it.
func (s *Scope) fault() error {
	err := s.err
	s.err = nil

	return err
}
