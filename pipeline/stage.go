package pipeline

import "context"

// Func returns a stage that is a plain function. All lanes share it, so it must be safe for concurrent use; what needs a
// state of its own, or something to open and close, is a type and has a [Stage].New. A nil f is a mistake that [Compile]
// reports.
func Func(name string, f TransformFunc) Stage {
	if f == nil {
		return Stage{Name: name}
	}

	return Stage{Name: name, New: func() (Transform, error) { return f, nil }}
}

// Filter returns a stage that lets the messages pass that keep picks; the others are finished. All lanes share keep,
// which must not change the message. A nil keep is a mistake that [Compile] reports.
func Filter(name string, keep func(*Message) bool) Stage {
	if keep == nil {
		return Stage{Name: name}
	}

	return Func(name, func(_ context.Context, m *Message, emit Emit) error {
		if !keep(m) {
			return nil
		}

		return emit(m)
	})
}
