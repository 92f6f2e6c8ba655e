package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// screen shows notes, which stay, and progress below them, which on a terminal is drawn over what was drawn before.
// It is safe for concurrent use.
type screen struct {
	mu    sync.Mutex
	out   io.Writer // written with mu held
	lines []string  // the progress that is shown; guarded by mu
	// terminal is what progress is drawn on; nil elsewhere.
	terminal *os.File
	quiet    bool
}

// newScreen returns a screen. The text goes to out, which may change it on its way to err.
func newScreen(err, out io.Writer, quiet bool) *screen {
	s := &screen{out: out, quiet: quiet}

	if f, ok := err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.terminal = f
	}

	return s
}

// live reports whether progress is drawn in place.
func (s *screen) live() bool { return s.terminal != nil }

// size returns the present size of the terminal in columns and rows.
func (s *screen) size() (width, height int) {
	const usualWidth, usualHeight = 80, 24

	width, height, err := term.GetSize(int(s.terminal.Fd()))
	if err != nil || width < 1 || height < 1 {
		return usualWidth, usualHeight
	}

	return width, height
}

// fit cuts lines to a size, since what is out of sight cannot be drawn over. One row is left for the cursor.
func fit(lines []string, width, height int) []string {
	if room := max(height-1, 1); len(lines) > room {
		more := len(lines) - room + 1
		lines = append(lines[:room-1:room-1], fmt.Sprintf("… and %d more lines", more))
	}

	for i, line := range lines {
		if r := []rune(line); len(r) >= width {
			lines[i] = string(r[:width-1])
		}
	}

	return lines
}

// draw shows progress in place of what was drawn before; where it cannot be drawn in place it is printed.
func (s *screen) draw(lines []string) {
	if s.quiet {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if !s.live() {
		s.print(lines)

		return
	}

	s.erase()

	width, height := s.size()
	s.lines = fit(lines, width, height)
	s.print(s.lines)
}

// notef writes a line that stays, above the progress.
func (s *screen) notef(format string, args ...any) {
	if !s.quiet {
		s.Write(fmt.Appendf(nil, format, args...)) //nolint:errcheck,gosec // it never fails
	}
}

// Write writes text that stays, above the progress, and ends it with a line break. It never fails: there is nobody left to
// be told.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	shown := s.lines
	s.erase()
	s.print([]string{strings.TrimRight(string(text), "\n")})

	s.lines = shown
	s.print(shown)

	return len(text), nil
}

// keep leaves the progress where it is; what comes next is below it.
func (s *screen) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.lines = nil
}

// clear removes the progress; what comes next is in its place.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.erase()
}

func (s *screen) print(lines []string) {
	if len(lines) > 0 {
		_, _ = io.WriteString(s.out, strings.Join(lines, "\n")+"\n")
	}
}

// erase removes the progress.
func (s *screen) erase() {
	if len(s.lines) > 0 {
		_, _ = fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", len(s.lines))
		s.lines = nil
	}
}
