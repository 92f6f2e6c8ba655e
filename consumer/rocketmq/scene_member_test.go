package rocketmq_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	endedAt       int64           // in milliseconds
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
	if s.orderly {
		m.process.Env = append(m.process.Env, sceneOrderly+"=1")
	}

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
