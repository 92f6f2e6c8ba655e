package main

import (
	"os"
	"strings"
	"testing"
)

func TestATerminalIsDrawnOver(t *testing.T) {
	t.Parallel()

	var got strings.Builder

	s := &screen{out: &got, width: 8}
	s.draw([]string{"one", "a longer line"})
	s.draw([]string{"two"})
	s.notef("stays %d\n", 1)
	s.notef("stays %d", 2)
	s.draw([]string{"three"})

	const want = "one\na longe\n" + "\x1b[2A\x1b[J" + "two\n" + "\x1b[1A\x1b[J" + "stays 1\n" + "stays 2\n" + "three\n"
	if got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
}

func TestAFileGetsPlainLines(t *testing.T) {
	t.Parallel()

	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = f.Close() })

	long := strings.Repeat("x", 200)
	s := newScreen(f)
	s.draw([]string{long})
	s.draw([]string{"two"})
	s.notef("stays")

	got, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}

	if want := long + "\ntwo\nstays\n"; string(got) != want || s.live() {
		t.Errorf("got %q, want %q", got, want)
	}
}
