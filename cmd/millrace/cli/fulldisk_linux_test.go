package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/cli"
)

// envDisk names the directory to work in, in the process that has a small disk or a limit.
const envDisk = "MILLRACE_TEST_SMALL_DISK"

// alone runs a test again in a process of its own, and returns false when there can be none like that.
func alone(t *testing.T, dir string, attr *syscall.SysProcAttr) bool {
	t.Helper()

	attr.Pdeathsig = syscall.SIGKILL

	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	child.Env, child.SysProcAttr = append(os.Environ(), envDisk+"="+dir), attr

	out, err := child.CombinedOutput()
	if err != nil && (len(out) == 0 || bytes.Contains(out, []byte(noMount))) {
		t.Logf("%v %s", err, out)

		return false
	}

	t.Logf("%s", out)

	if err != nil {
		t.Error(err)
	}

	return true
}

const noMount = "nothing can be mounted here"

// TestAFullDiskPausesTheJobAndIsLeftBehind fills a real file system under `millrace run`: below what the broker leaves free, and to
// the last byte. Producers are refused with the reason, jobs stand and say why, and when there is room everything goes on without
// anybody's doing, once.
func TestAFullDiskPausesTheJobAndIsLeftBehind(t *testing.T) {
	t.Parallel()

	if dir := os.Getenv(envDisk); dir != "" {
		onASmallDisk(t, dir)

		return
	}

	dir := t.TempDir()
	inNamespace := &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}

	if !alone(t, dir, inNamespace) && !alone(t, dir, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}) {
		t.Skip("no process may mount a file system of its own here; TestALimitOnFilesLosesNothing takes its place in part")
	}
}

// onASmallDisk is the test in the process that may mount what nobody else sees.
func onASmallDisk(t *testing.T, dir string) {
	t.Helper()

	// Room for what a broker leaves free, and for a log of its own and one to come, which it takes in advance.
	err := errors.Join(syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256m"))
	if err != nil {
		t.Fatal(noMount, err)
	}

	w := &world{t: t, dir: dir, broker: filepath.Join(dir, "data")}
	d := &ballast{t: t, dir: dir}

	w.ok("", "topics", "create", "in", "--queues", "1")
	w.ok("", "topics", "create", "bad", "--queues", "1")

	run := w.start("run", "--verbose", w.write("job.yaml", fullDiskJobs))

	run.err.await(t, "grave: runs")
	run.err.await(t, "upper: runs")
	belowTheReserve(w, d, run)
	toTheLastByte(w, d, run)
	run.interrupt()

	if code := run.end(); code != cli.ExitOK {
		t.Errorf("exit code %d\n%.10000s", code, run.err)
	}
}

const fullDiskJobs = `
name: upper
broker: { embedded: DIR/data }
source: { topic: in }
retry: { delay: [100ms] }
channels:
  work:
    breaker: { window: 4, pause: 100ms }
    stages: [upper]
    sink: { topic: { name: out } }
---
name: grave
source: { topic: bad }
retry: { dead_letter: graves }
channels:
  bury:
    stages: [fail: { with: it }]
    sink: discard
`

// ballast takes room away.
type ballast struct {
	t   *testing.T
	dir string
}

// leave fills the disk until so many bytes are free.
func (b *ballast) leave(free int64) {
	b.t.Helper()

	file, err := os.OpenFile(filepath.Join(b.dir, "ballast"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}

	var disk syscall.Statfs_t

	for err == nil {
		if err := syscall.Statfs(b.dir, &disk); err != nil {
			b.t.Fatal(err)
		}

		more := int64(disk.Bavail)*int64(disk.Bsize) - free //nolint:unconvert // it has 32 bits on some processors
		if more <= 0 {
			break
		}

		_, err = file.Write(make([]byte, min(more, 1<<20)))
	}

	if err := errors.Join(err, file.Close()); err != nil && !errors.Is(err, syscall.ENOSPC) {
		b.t.Fatal(err)
	}
}

// remove makes room.
func (b *ballast) remove() {
	b.t.Helper()

	if err := os.Remove(filepath.Join(b.dir, "ballast")); err != nil {
		b.t.Fatal(err)
	}
}

// belowTheReserve leaves less free than the broker keeps, while messages wait for a job that publishes.
func belowTheReserve(w *world, d *ballast, run *job) {
	w.t.Helper()
	w.ok("", "pause", "in")
	w.ok(strings.Repeat("a\n", 30), "produce", "in", "--key", "k")
	d.leave(60 << 20)

	c := w.do("b\n", "produce", "in")
	if c.code != cli.ExitFailed || !strings.Contains(c.err, "the disk is full: "+w.broker) || !strings.Contains(c.err, "free some space") {
		w.t.Errorf("produce on a full disk: exit code %d\n%s", c.code, c.err)
	}

	w.ok("", "resume", "in")
	run.err.await(w.t, "channel work pauses")

	if why := w.ok("", "why", "in"); !strings.Contains(why, "the disk is full: "+w.broker) || !strings.Contains(why, "in/0  stands at") {
		w.t.Errorf("why says\n%s", why)
	}

	d.remove()
	run.err.await(w.t, "channel work goes on")
	w.ok("end\n", "produce", "in", "--key", "k")

	w.wantLines(31, "out")
}

// wantLines waits for so many messages in a topic, and checks that there are no more.
func (w *world) wantLines(n int, topic string) {
	w.t.Helper()

	follow := w.start("consume", topic, "--follow")
	follow.out.awaitLines(w.t, n)
	follow.interrupt()

	if code := follow.end(); code != cli.ExitOK {
		w.t.Errorf("consume: exit code %d\n%s", code, follow.err)
	}

	if got := strings.Count(w.ok("", "consume", topic), "\n"); got != n {
		w.t.Errorf("%s has %d messages, want %d", topic, got, n)
	}
}

// awaitLines waits until so many lines have been written.
func (w *watched) awaitLines(t *testing.T, n int) {
	t.Helper()

	for {
		w.mu.Lock()
		got, changed := bytes.Count(w.text.Bytes(), []byte("\n")), w.changed
		w.mu.Unlock()

		if got >= n {
			return
		}

		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("%d lines were written, want %d", got, n)
		}
	}
}

// needs is what the error of a disk without any room says.
var needs = regexp.MustCompile(`goes on by itself when \d+ bytes are free`)

// toTheLastByte leaves nothing free while messages are dead-lettered, for which the broker takes what it leaves free otherwise.
func toTheLastByte(w *world, d *ballast, run *job) {
	w.t.Helper()

	const letters = 150 // of 10 kB: more than what is kept of a log before another one is begun

	w.ok("", "pause", "bad")
	w.ok(strings.Repeat(strings.Repeat("x", 10_000)+"\n", letters), "produce", "bad")
	d.leave(0)
	w.ok("", "resume", "bad")
	run.err.await(w.t, "the disk refuses a write")

	c := w.do("c\n", "produce", "in")
	if c.code != cli.ExitFailed || !strings.Contains(c.err, "the disk is full: "+w.broker) || !needs.MatchString(c.err) {
		w.t.Errorf("produce on a disk without room: exit code %d\n%s", c.code, c.err)
	}

	if why := w.ok("", "why", "bad"); !strings.Contains(why, "no space left on device") {
		w.t.Errorf("why says\n%s", why)
	}

	d.remove()
	run.err.await(w.t, "the disk has room again, and the broker goes on")
	w.wantLines(letters, "graves")
	w.wantLines(31, "out")
}

// TestALimitOnFilesLosesNothing has the system refuse writes beyond a size, as it can be made to everywhere: producers and who
// runs the job are told, and what was acknowledged is there in the next process. It shows that a refusal by the system is met as
// those of the file systems of other tests are; going on by itself is for a full disk only.
func TestALimitOnFilesLosesNothing(t *testing.T) {
	t.Parallel()

	dir := os.Getenv(envDisk)
	if dir == "" {
		if !alone(t, t.TempDir(), &syscall.SysProcAttr{}) {
			t.Error("there is no such process")
		}

		return
	}

	w := &world{t: t, dir: dir, broker: filepath.Join(dir, "data")}
	file := w.write("job.yaml", upperJob)

	w.ok("", "topics", "create", "in", "--queues", "1")

	whole := limitFiles(t, 900<<10)
	run := w.start("run", file)

	run.err.await(t, "upper: runs")

	c := w.do(strings.Repeat(strings.Repeat("x", 1000)+"\n", 5000), "produce", "in", "--key", "k")

	var published int
	if _, err := fmt.Sscanf(strings.ReplaceAll(c.err, ",", ""), "published %d", &published); err != nil {
		t.Errorf("nothing was acknowledged before the limit: %v\n%s", err, c.err)
	}

	if c.code != cli.ExitFailed || !strings.Contains(c.err, w.broker) || !strings.Contains(c.err, "file too large") {
		t.Errorf("produce beyond the limit: exit code %d\n%s", c.code, c.err)
	}

	run.err.await(t, "the disk refuses a write")
	run.interrupt()
	run.interrupt()
	run.end()
	limitFiles(t, whole)
	w.ok("", "run", "--until-end", file)

	if got := strings.Count(w.ok("", "consume", "out"), "\n"); got < published {
		t.Errorf("%d messages have got through, and %d were acknowledged", got, published)
	}

	t.Logf("%d acknowledged", published)
}

// limitFiles sets how large a file may grow, and returns how large it might before.
func limitFiles(t *testing.T, size uint64) (before uint64) {
	t.Helper()

	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}

	before, limit.Cur = limit.Cur, size

	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}

	signal.Ignore(syscall.SIGXFSZ) // which would end the process

	return before
}
