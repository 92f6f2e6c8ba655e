package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// screen shows progress. On a terminal a block of lines is drawn over the one before; elsewhere its first lines are
// printed now and then. It belongs to one goroutine.
type screen struct {
	out io.Writer
	// width is the terminal's width in columns; 0 means that there is no terminal.
	width int
	drawn int
}

func newScreen(f *os.File) *screen {
	s := &screen{out: f}

	if term.IsTerminal(int(f.Fd())) {
		s.width = 80

		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			s.width = width
		}
	}

	return s
}

// live reports whether progress is drawn.
func (s *screen) live() bool { return s.width > 0 }

// draw shows progress in place of what was drawn before.
func (s *screen) draw(lines []string) {
	s.erase()

	for _, line := range lines {
		if s.live() {
			if r := []rune(line); len(r) >= s.width {
				line = string(r[:s.width-1])
			}

			s.drawn++
		}

		_, _ = fmt.Fprintln(s.out, line)
	}
}

// notef writes a line that stays.
func (s *screen) notef(format string, args ...any) {
	s.erase()

	_, _ = fmt.Fprintln(s.out, strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
}

// erase removes what was drawn.
func (s *screen) erase() {
	if s.drawn > 0 {
		_, _ = fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}
