package plugins

import "strings"

// OptionsError is returned by [Decode] and holds all mistakes that it found.
type OptionsError struct {
	// Mistakes are in the order of their paths; in each struct, what is missing comes first.
	Mistakes []Mistake
}

// Mistake is one mistake in options.
type Mistake struct {
	// Path locates it below the options: names joined by dots, elements of a list as [index]. Empty for the options as a whole.
	Path string
	// Problem says what is wrong and, where it can, what would be right.
	Problem string
}

var _ error = (*OptionsError)(nil)

// Error lists the mistakes, each with its path.
func (e *OptionsError) Error() string {
	var b strings.Builder

	for i, m := range e.Mistakes {
		if i > 0 {
			b.WriteString("; ")
		}

		if m.Path != "" {
			b.WriteString(m.Path + ": ")
		}

		b.WriteString(m.Problem)
	}

	return b.String()
}
