package rocketmq_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// sceneMember is one member in a process of its own.
type sceneMember struct {
	number   int
	process  *exec.Cmd
	problems strings.Builder
	silent   chan struct{} // closed when the process says nothing any more

	ended, killed bool
	held          map[string]bool // its queues when it ended
}

// sceneWord is a member's word on a queue that it got or lost.
type sceneWord struct {
	from        *sceneMember
	word, queue string
}

// starts one more member.
func (s *scene) starts() *sceneMember {
	s.Helper()

	m := &sceneMember{number: len(s.members), silent: make(chan struct{})}
	s.members = append(s.members, m)

	m.process = exec.CommandContext(s.Context(), os.Args[0], "-test.run=^TestSceneChild$", "-test.timeout=10m")
	m.process.Env = append(os.Environ(), sceneServer+"="+s.cluster.NameServer,
		sceneLedger+"="+filepath.Join(s.dir, fmt.Sprintf("ledger-%d", m.number)))
	m.process.Stderr = os.Stderr

	out, err := m.process.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}

	if err := m.process.Start(); err != nil {
		s.Fatal(err)
	}

	go func() {
		defer close(m.silent)

		for lines := bufio.NewScanner(out); lines.Scan(); {
			if word, queue, found := strings.Cut(lines.Text(), " "); found && (word == "A" || word == "V") {
				s.words <- sceneWord{m, word, queue}
			} else {
				m.problems.WriteString(lines.Text() + "\n")
			}
		}
	}()

	return m
}

// exits waits for the end of the process, which is in order unless it was killed.
func (m *sceneMember) exits(t *testing.T) {
	t.Helper()

	<-m.silent

	err := m.process.Wait()
	status, _ := m.process.ProcessState.Sys().(syscall.WaitStatus)

	if !m.killed && err != nil || m.killed && status.Signal() != syscall.SIGKILL {
		t.Fatalf("member %d ended with %v\n%s", m.number, err, m.problems.String())
	}
}

// addTo adds what a member's ledger says to the books.
func (m *sceneMember) addTo(b *sceneBooks, text string) {
	counts, last := map[string]int{}, map[string]int{} // writes of a queue since its last but one checkpoint, and its last

	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 4 || words[len(words)-1] != "." {
			continue // torn by the kill
		}

		switch words[1] {
		case "W":
			at, _ := strconv.ParseInt(words[0], 10, 64)
			b.writes = append(b.writes, sceneWrite{at: at, by: m, place: words[3] + " " + words[4]})
			b.done[words[2]] = true
			counts[words[3]]++
			last[words[3]]++
		case "D":
			b.done[words[2]] = true
			b.dead++
		case "C":
			counts[words[2]], last[words[2]] = last[words[2]], 0
		}
	}

	for _, n := range counts {
		b.since[m] += n
	}
}
