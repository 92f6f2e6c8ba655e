package actors_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
)

// recordAt names a stored message: its queue and its offset.
type recordAt struct{ queue, offset string }

// lived is what the ledger of one life says.
type lived struct {
	published []string
	dead      []string
	// written are the records in the order in which the sink had them, wrote their message ids.
	written []recordAt
	ids     []string
	// since counts the writes since the last checkpoint was begun, at the latest: since the last but one was confirmed.
	since int
	clean bool
	// repeated counts the records written in this life and again in a later one.
	repeated int
}

func readLife(t *testing.T, path string) *lived {
	t.Helper()

	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}

	var (
		l      lived
		counts = make(map[string]int) // writes of a queue since its last but one checkpoint
		last   = make(map[string]int) // and since its last one
	)

	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[len(words)-1] != "." {
			continue // torn by the kill
		}

		switch words[0] {
		case "P":
			l.published = append(l.published, words[1])
		case "D":
			l.dead = append(l.dead, words[1])
		case "W":
			l.written = append(l.written, recordAt{queue: words[2], offset: words[3]})
			l.ids = append(l.ids, words[1])
			counts[words[2]]++
			last[words[2]]++
		case "C":
			counts[words[1]], last[words[1]] = last[words[1]], 0
		case "clean":
			l.clean = true
		}
	}

	for _, n := range counts {
		l.since += n
	}

	return &l
}

// A job over the embedded broker is killed at random moments, some of them while it starts; in between it is stopped.
func TestKilledProcessesLoseNothing(t *testing.T) {
	t.Parallel()

	kills := 50
	if testing.Short() {
		kills = 8
	}

	if many := os.Getenv("MILLRACE_KILLS"); many != "" {
		n, err := strconv.Atoi(many)
		if err != nil {
			t.Fatal(err)
		}

		kills = n
	}

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)

	rnd := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()

	var lives []*lived

	for killed := 0; killed < kills; {
		stop := len(lives)%8 == 7
		live(t, dir, len(lives), stop, time.Duration(20+rnd.IntN(900))*time.Millisecond)

		l := readLife(t, filepath.Join(dir, fmt.Sprintf("ledger-%d", len(lives))))
		if stop && !l.clean {
			t.Fatalf("life %d was stopped and is not clean", len(lives))
		}

		lives = append(lives, l)

		if !l.clean {
			killed++
			actors.TellProgress("kills", killed, kills)
		}
	}

	last := child(t, dir, len(lives))
	last.Env = append(last.Env, killLast+"=1")
	// It works off what all lives before it have left.
	last.Args = append(last.Args, "-test.timeout="+(2*time.Minute+time.Duration(kills)*time.Second).String())

	if out, err := last.CombinedOutput(); err != nil {
		t.Fatalf("the last life: %v\n%s", err, out)
	}

	lives = append(lives, readLife(t, filepath.Join(dir, fmt.Sprintf("ledger-%d", len(lives)))))

	nothingLost(t, lives)
	repeatsWithinBounds(t, lives)
}

// child is the command of one life.
func child(t *testing.T, dir string, life int) *exec.Cmd {
	t.Helper()

	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillChild$", "-test.timeout=2m")
	c.Env = append(os.Environ(), killDir+"="+dir, killLife+"="+strconv.Itoa(life))

	return c
}

// live runs one life: it is stopped by SIGTERM some time after it runs, or killed some time after it was begun.
func live(t *testing.T, dir string, life int, stop bool, d time.Duration) {
	t.Helper()

	var problems strings.Builder

	c := child(t, dir, life)
	c.Stderr = &problems

	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := c.Start(); err != nil {
		t.Fatal(err)
	}

	lines := bufio.NewScanner(out)

	for stop && lines.Scan() {
		if lines.Text() == "runs" {
			break
		}
	}

	<-time.After(d)

	sig := syscall.SIGKILL
	if stop {
		sig = syscall.SIGTERM
	}

	if err := c.Process.Signal(sig); err != nil {
		t.Errorf("life %d: %v", life, err)
	}

	for lines.Scan() {
		problems.WriteString(lines.Text() + "\n")
	}

	err = c.Wait()

	switch status, _ := c.ProcessState.Sys().(syscall.WaitStatus); {
	case stop && err != nil, !stop && status.Signal() != syscall.SIGKILL:
		t.Fatalf("life %d ended with %v\n%s", life, err, problems.String())
	}
}

// nothingLost fails the test unless everything that was acknowledged was written, or parked where it had to be.
func nothingLost(t *testing.T, lives []*lived) {
	t.Helper()

	written, dead, published := make(map[string]bool), make(map[string]int), 0

	for _, l := range lives {
		for _, id := range l.ids {
			written[id] = true
		}

		for _, id := range l.dead {
			dead[id]++
		}
	}

	for _, l := range lives {
		published += len(l.published)

		for _, id := range l.published {
			rejected := numberOf(id)%100 == 3
			if rejected && dead[id] != 1 {
				t.Errorf("%s has %d dead letters", id, dead[id])
			}

			if rejected == written[id] {
				t.Errorf("%s: written %t", id, written[id])
			}
		}
	}

	t.Logf("%d messages were acknowledged, %d written, %d parked", published, len(written), len(dead))

	if published == 0 || len(dead) == 0 {
		t.Error("the job had nothing to do")
	}
}

// repeatsWithinBounds fails the test where a kill made the job do more again than what was in flight and what it had done
// since its last checkpoint, or where a clean stop made it do anything again.
func repeatsWithinBounds(t *testing.T, lives []*lived) {
	t.Helper()

	doneIn := make(map[recordAt]int)

	for i, l := range lives {
		for _, r := range l.written {
			if before, again := doneIn[r]; again {
				lives[before].repeated++

				if before == i {
					t.Errorf("%v was written twice in life %d", r, i)
				}
			}

			doneIn[r] = i
		}
	}

	var (
		repeats []int
		total   int
		shares  histogram
	)

	for i, l := range lives {
		total += len(l.written)

		switch {
		case l.clean && l.repeated > 0:
			t.Errorf("%d messages were done again after the clean stop of life %d", l.repeated, i)
		case l.repeated > l.since+killInFlight:
			t.Errorf("%d messages were done again after kill %d; %d were done since the last checkpoint", l.repeated, i, l.since)
		case !l.clean:
			repeats = append(repeats, l.repeated)
			shares.add(l.repeated, l.since+killInFlight)
		}
	}

	slices.Sort(repeats)

	if len(repeats) > 0 {
		t.Logf("repeats a kill, of %d kills and %d writes: median %d, p90 %d, most %d; all: %v", len(repeats), total,
			repeats[len(repeats)/2], repeats[len(repeats)*9/10], repeats[len(repeats)-1], repeats)
		t.Logf("repeats a kill, as a share of the bound of I6:\n%s", &shares)
	}
}
