package rocketmqtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// stopTimeout is how long a server may take to stop by itself; ten seconds are common.
const stopTimeout = 40 * time.Second

// server is how a Java process is started.
type server struct {
	name string   // of the server, and of its log
	dir  string   // its home
	lib  string   // the jars
	jvm  []string // its memory
	main string   // the class
	args []string
}

// process is a server that was started.
type process struct {
	name   string
	log    string
	raw    *os.Process
	exited chan struct{} // closed when the process has ended; err is constant then
	err    error
}

// start starts the server. It ends with this process at the latest, where the operating system can do that.
func (s server) start(ctx context.Context) (*process, error) {
	p := &process{name: s.name, log: filepath.Join(s.dir, s.name+".out"), exited: make(chan struct{})}

	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("rocketmqtest: %w", err)
	}

	args := append([]string{
		"-XX:+UseSerialGC", "-Xshare:auto", "-XX:TieredStopAtLevel=1", // for a quick start
		"-Duser.home=" + s.dir, "-Drocketmq.home.dir=" + s.dir,
		"-Djava.io.tmpdir=" + s.dir, // they unpack libraries and write keys, which a killed one would leave behind
	}, s.jvm...)
	args = append(append(args, "-cp", filepath.Join(s.lib, "*"), s.main), s.args...)

	// Ending the servers is the caller's, in an order of its own, so no context does it.
	command := exec.CommandContext(context.WithoutCancel(ctx), "java", args...) //nolint:gosec // our own arguments
	command.Dir, command.Stdout, command.Stderr = s.dir, log, log
	command.SysProcAttr = endWithParent()

	started := make(chan error)

	go func() {
		// The operating system takes the thread that started the process for its parent, so that has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = log.Close() }()

		err := command.Start()
		started <- err

		if err == nil {
			p.err = command.Wait()
			close(p.exited)
		}
	}()

	if err := <-started; err != nil {
		return nil, fmt.Errorf("rocketmqtest: %w", err)
	}

	p.raw = command.Process

	return p, nil
}

// stop lets the process end by itself, and waits for that.
func (p *process) stop() error {
	if err := p.raw.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("rocketmqtest: stop %s: %w", p.name, err)
	}

	select {
	case <-p.exited:
		return nil
	case <-time.After(stopTimeout):
		p.kill()

		return fmt.Errorf("rocketmqtest: %s did not stop within %v and was killed\n%s", p.name, stopTimeout, p.output())
	}
}

// kill ends the process at once, and waits for that.
func (p *process) kill() {
	_ = p.raw.Kill() // it fails only when there is no process any more

	<-p.exited
}

// output returns the last lines that the process has written.
func (p *process) output() []byte {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}

	return tail(content)
}

// tail returns the last lines of a text.
func tail(text []byte) []byte {
	const most = 20

	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))

	return bytes.Join(lines[max(0, len(lines)-most):], []byte("\n"))
}
