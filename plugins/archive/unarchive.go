package archive

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/internal/pieces"
)

// Unarchive makes the messages of archives. It belongs to one lane.
type Unarchive struct {
	counts

	options UnarchiveOptions
}

var (
	_ pipeline.Transform = (*Unarchive)(nil)
	_ pipeline.Meter     = (*Unarchive)(nil)
)

// NewUnarchive returns a transform.
func NewUnarchive(o UnarchiveOptions) (*Unarchive, error) {
	if o.Format > Messages {
		return nil, fmt.Errorf("unarchive: there is no format %d", o.Format)
	}

	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("unarchive: %w", err)
	}

	if o.Most == 0 {
		o.Most = 100_000
	}

	return &Unarchive{options: o}, nil
}

// Transform emits the messages of the archive m, after all of it has been read.
func (u *Unarchive) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	outs, err := u.read(m)
	if err != nil {
		return pipeline.Reject(fmt.Errorf("unarchive: %w", err))
	}

	for i, out := range outs {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("unarchive: after %d messages: %w", i, err)
		}

		if err := emit(out); err != nil {
			return err
		}
	}

	u.add(len(outs))

	return nil
}

func (u *Unarchive) read(m *pipeline.Message) ([]*pipeline.Message, error) {
	all, err := u.cut(m.Body)
	if err != nil {
		return nil, fmt.Errorf("the body %w", err)
	}

	var outs []*pipeline.Message

	for piece := range all {
		if len(outs) == u.options.Most {
			return nil, fmt.Errorf("more than %d messages; the option most allows more", u.options.Most)
		}

		out, err := u.message(piece, len(outs), m)
		if err != nil {
			return nil, fmt.Errorf("line %d %w", len(outs)+1, err)
		}

		outs = append(outs, out)
	}

	return outs, nil
}

func (u *Unarchive) message(piece []byte, number int, archive *pipeline.Message) (*pipeline.Message, error) {
	if u.options.Format == Messages {
		return parseLine(piece, archive)
	}

	m := archive.Clone()
	m.Body = piece

	if m.ID != "" {
		m.ID += "/" + strconv.Itoa(number)
	}

	return m, nil
}

func (u *Unarchive) cut(body []byte) (iter.Seq[[]byte], error) {
	if u.options.Format == Array {
		return pieces.Elements(body) //nolint:wrapcheck // the caller puts the place around it
	}

	return pieces.Lines(body), nil
}
