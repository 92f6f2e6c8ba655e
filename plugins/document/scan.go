package document

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"
)

// maxDepth bounds the nesting, and so the stack: no event is that deep by intent.
const maxDepth = 1000

// scanner checks a text by the grammar of RFC 8259. Its methods take the place where a thing begins and return the place behind
// it; a negative place is a fault, which is kept.
type scanner struct {
	text    []byte
	depth   int
	escapes int // seen so far
	fault   SyntaxError
}

func (s *scanner) failf(at int, format string, args ...any) int {
	if s.fault.Problem == "" {
		s.fault = SyntaxError{Offset: at, Problem: fmt.Sprintf(format, args...)}
	}

	return -1
}

// unexpected names what stands where something else should.
func (s *scanner) unexpected(at int, want string) int {
	if at >= len(s.text) {
		return s.failf(len(s.text), "the end comes where %s should be", want)
	}

	r, size := utf8.DecodeRune(s.text[at:])
	if r == utf8.RuneError && size <= 1 {
		return s.failf(at, "there is 0x%02x where %s should be", s.text[at], want)
	}

	return s.failf(at, "there is %q where %s should be", r, want)
}

// document scans all of the text into d.
func (s *scanner) document(d *Document) error {
	if len(s.text) > math.MaxInt32 {
		s.failf(0, "more than 2 GiB")

		return s.err()
	}

	start := s.space(0)

	var end int
	if start < len(s.text) && s.text[start] == '{' {
		end = s.object(start, d)
	} else {
		end = s.value(start)
	}

	if end < 0 {
		return s.err()
	}

	d.root = span{uint32(start), uint32(end)}

	if rest := s.space(end); rest < len(s.text) {
		s.unexpected(rest, "the end")

		return s.err()
	}

	return nil
}

// err returns the fault; the scanner itself stays on the stack.
func (s *scanner) err() error {
	fault := s.fault

	return &fault
}

func (s *scanner) space(i int) int {
	for i < len(s.text) && s.text[i] <= ' ' && isSpace(s.text[i]) {
		i++
	}

	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func (s *scanner) value(i int) int {
	if i >= len(s.text) {
		return s.unexpected(i, "a value")
	}

	switch c := s.text[i]; c {
	case '"':
		return s.string(i)
	case '{':
		return s.object(i, nil)
	case '[':
		return s.array(i)
	case 't':
		return s.word(i, "true")
	case 'f':
		return s.word(i, "false")
	case 'n':
		return s.word(i, "null")
	default:
		if c == '-' || c-'0' <= 9 {
			return s.number(i)
		}

		return s.unexpected(i, "a value")
	}
}

func (s *scanner) word(i int, word string) int {
	if len(s.text)-i >= len(word) && string(s.text[i:i+len(word)]) == word {
		return i + len(word)
	}

	return s.unexpected(i, "a value")
}

func (s *scanner) number(i int) int {
	if s.text[i] == '-' {
		i++
	}

	switch {
	case i < len(s.text) && s.text[i] == '0':
		i++
	default:
		if i = s.digits(i); i < 0 {
			return i
		}
	}

	if i < len(s.text) && s.text[i] == '.' {
		if i = s.digits(i + 1); i < 0 {
			return i
		}
	}

	if i < len(s.text) && s.text[i]|0x20 == 'e' {
		i++
		if i < len(s.text) && (s.text[i] == '+' || s.text[i] == '-') {
			i++
		}

		return s.digits(i)
	}

	return i
}

func (s *scanner) digits(i int) int {
	start := i
	for i < len(s.text) && s.text[i]-'0' <= 9 {
		i++
	}

	if i == start {
		return s.unexpected(i, "a digit")
	}

	return i
}

// string scans from the quote at i on.
func (s *scanner) string(i int) int {
	text := s.text

	for i++; ; {
		for i+8 <= len(text) {
			if special := special(binary.LittleEndian.Uint64(text[i:])); special != 0 {
				i += bits.TrailingZeros64(special) / 8

				break
			}

			i += 8
		}

		for i < len(text) && text[i] != '"' && text[i] != '\\' && text[i] >= ' ' { // the last seven bytes of the text
			i++
		}

		switch {
		case i >= len(text):
			return s.failf(i, "the end comes inside a string")
		case text[i] == '"':
			return i + 1
		case text[i] < ' ':
			return s.failf(i, "there is a control character 0x%02x inside a string", text[i])
		}

		if i = s.escape(i); i < 0 {
			return i
		}
	}
}

// special has the top bit of the lowest byte in a word that is a quote, a backslash or a control character; above that byte its
// bits mean nothing, since what is taken from one byte comes from those above.
func special(word uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080

	// A quote with bit 1 flipped is a space, a space is not, and control characters stay what they are: all are below 0x21 now.
	low, slash := word^(ones*2), word^(ones*'\\')

	return ((low-ones*(' '+1))&^low | (slash-ones)&^slash) & tops
}

// escape scans what begins with the backslash at i.
func (s *scanner) escape(i int) int {
	s.escapes++

	if i+1 >= len(s.text) {
		return s.failf(len(s.text), "the end comes inside a string")
	}

	switch s.text[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		for k := i + 2; k < i+6; k++ {
			if k >= len(s.text) || !isHex(s.text[k]) {
				return s.unexpected(k, "a hexadecimal digit")
			}
		}

		return i + 6
	default:
		return s.unexpected(i+1, "the rest of an escape")
	}
}

func isHex(c byte) bool { return c-'0' <= 9 || c|0x20 >= 'a' && c|0x20 <= 'f' }

// object scans an object; its members go into the index of d, unless that is nil.
func (s *scanner) object(i int, d *Document) int {
	s.depth++
	if s.depth > maxDepth {
		return s.failf(i, "values are nested more than %d deep", maxDepth)
	}

	i = s.space(i + 1)
	if i < len(s.text) && s.text[i] == '}' {
		s.depth--

		return i + 1
	}

	for {
		from, escapes := i, s.escapes

		if i = s.name(i); i < 0 {
			return i
		}

		if d != nil {
			d.index = append(d.index, entry{uint32(from), s.mark(from, i, escapes)})
		}

		if i = s.colon(i); i < 0 {
			return i
		}

		if i = s.value(i); i < 0 {
			return i
		}

		i = s.space(i)

		switch {
		case i < len(s.text) && s.text[i] == ',':
			i = s.space(i + 1)
		case i < len(s.text) && s.text[i] == '}':
			s.depth--

			return i + 1
		default:
			return s.unexpected(i, "a comma or }")
		}
	}
}

// name scans the name of a member.
func (s *scanner) name(i int) int {
	if i >= len(s.text) || s.text[i] != '"' {
		return s.unexpected(i, "a name in quotes")
	}

	return s.string(i)
}

// mark returns the mark of the name between two places, before which there were that many escapes.
func (s *scanner) mark(from, to, escapes int) mark {
	if s.escapes != escapes {
		return 0
	}

	return markOf(s.text[from+1 : to-1])
}

// colon scans from the end of a name to the value.
func (s *scanner) colon(i int) int {
	if i = s.space(i); i >= len(s.text) || s.text[i] != ':' {
		return s.unexpected(i, "a colon")
	}

	return s.space(i + 1)
}

// member scans a name and its value, of a text that was checked before, into m.
func (s *scanner) member(i int, m *member) int {
	escapes := s.escapes
	end := s.string(i)

	m.name, m.mark = span{uint32(i), uint32(end)}, s.mark(i, end, escapes)

	from := s.colon(end)
	to := s.value(from)

	m.value = span{uint32(from), uint32(to)}

	return to
}

func (s *scanner) array(i int) int {
	s.depth++
	if s.depth > maxDepth {
		return s.failf(i, "values are nested more than %d deep", maxDepth)
	}

	i = s.space(i + 1)
	if i < len(s.text) && s.text[i] == ']' {
		s.depth--

		return i + 1
	}

	for {
		if i = s.value(i); i < 0 {
			return i
		}

		i = s.space(i)

		switch {
		case i < len(s.text) && s.text[i] == ',':
			i = s.space(i + 1)
		case i < len(s.text) && s.text[i] == ']':
			s.depth--

			return i + 1
		default:
			return s.unexpected(i, "a comma or ]")
		}
	}
}

// members yields the members of a text that was checked before and is an object.
func (s *scanner) members(yield func(*member) bool) {
	for i := s.space(1); s.text[i] != '}'; {
		var m member

		i = s.space(s.member(i, &m))

		if !yield(&m) {
			return
		}

		if s.text[i] == ',' {
			i = s.space(i + 1)
		}
	}
}

// elements yields the elements of a text that was checked before and is a list.
func (s *scanner) elements(yield func(span) bool) {
	for i := s.space(1); s.text[i] != ']'; {
		from := i
		to := s.value(i)

		if !yield(span{uint32(from), uint32(to)}) {
			return
		}

		if i = s.space(to); s.text[i] == ',' {
			i = s.space(i + 1)
		}
	}
}
