package document

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Path leads to a value in a document: a.b for names in objects, list[0] for elements from 0, and ["a name"] for names that are
// no plain words. The zero value leads to the whole document.
type Path struct {
	text  string
	steps []step
}

// step is a name in an object or an index in a list.
type step struct {
	name  string
	index int // -1 for a name
	mark  mark
}

func nameStep(name string) step { return step{name: name, index: -1, mark: markOf(name)} }

// ParsePath returns the path of a text.
func ParsePath(text string) (Path, error) {
	if !utf8.ValidString(text) {
		return Path{}, fmt.Errorf("%q is no UTF-8", text)
	}

	p := Path{text: text}

	rest := text
	if rest != "" && rest[0] != '.' && rest[0] != '[' {
		rest = "." + rest
	}

	for rest != "" {
		s, after, err := parseStep(rest)
		if err != nil {
			return Path{}, fmt.Errorf("%q: %w", text, err)
		}

		p.steps = append(p.steps, s)
		rest = after
	}

	return p, nil
}

func parseStep(text string) (s step, rest string, err error) {
	switch {
	case text[0] == '.':
		name := text[1:]
		if end := strings.IndexAny(name, ".["); end >= 0 {
			name = name[:end]
		}

		if name == "" {
			return step{}, "", errors.New("there is no name behind a dot")
		}

		return nameStep(name), text[1+len(name):], nil
	case strings.HasPrefix(text, `["`):
		quoted, err := strconv.QuotedPrefix(text[1:])
		if err != nil || !strings.HasPrefix(text[1+len(quoted):], "]") {
			return step{}, "", errors.New(`["NAME"] is not closed`)
		}

		name, _ := strconv.Unquote(quoted) // what QuotedPrefix returns can be unquoted

		return nameStep(name), text[len(quoted)+2:], nil
	default:
		inner, rest, closed := strings.Cut(text, "]")

		n, err := strconv.ParseUint(strings.TrimPrefix(inner, "["), 10, 31)
		if !closed || err != nil || inner[0] != '[' {
			return step{}, "", fmt.Errorf("%s is no step; there are .NAME, [0] and [\"NAME\"]", text)
		}

		return step{index: int(n)}, rest, nil
	}
}

// Name returns the path of a single name.
func Name(name string) Path { return Path{}.Member(name) }

// Member returns the path to a member of the object that p leads to.
func (p Path) Member(name string) Path {
	return p.then(nameStep(name))
}

// Element returns the path to an element of the list that p leads to, from 0.
func (p Path) Element(index int) Path {
	return p.then(step{index: index})
}

func (p Path) then(s step) Path {
	return Path{text: p.text + s.suffix(p.text == ""), steps: append(slices.Clip(p.steps), s)}
}

func (s step) suffix(first bool) string {
	switch {
	case s.index >= 0:
		return "[" + strconv.Itoa(s.index) + "]"
	case s.name == "" || strings.ContainsFunc(s.name, func(r rune) bool { return !isWord(r) }):
		return "[" + strconv.Quote(s.name) + "]"
	case first:
		return s.name
	default:
		return "." + s.name
	}
}

func isWord(r rune) bool {
	return r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// String returns the path as it was written.
func (p Path) String() string { return p.text }

// IsRoot reports whether the path leads to the whole document.
func (p Path) IsRoot() bool { return len(p.steps) == 0 }

// UnmarshalText parses a path.
func (p *Path) UnmarshalText(text []byte) error {
	parsed, err := ParsePath(string(text))
	if err == nil {
		*p = parsed
	}

	return err
}

// OptionType says that it is a path.
func (Path) OptionType() (name string, values []string) { return "path", nil }
