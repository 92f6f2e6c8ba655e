package servertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const (
	// loopback is where all servers listen: nobody else has business with them.
	loopback = "127.0.0.1"
	// attempts is how often a server is started when somebody else takes its port meanwhile.
	attempts = 5
	// readyTimeout is how long a server may take to be of use; a second is common.
	readyTimeout = 60 * time.Second
	readyPause   = 10 * time.Millisecond
	// stopTimeout is how long a server may take to stop by itself.
	stopTimeout = 20 * time.Second
)

// process is a server that was started.
type process struct {
	name   string
	log    string
	raw    *os.Process
	exited chan struct{} // closed when the process has ended; err is constant then
	err    error
}

// launch starts a program. It ends with this process at the latest, where the operating system can do that.
func launch(name, dir string, attr *syscall.SysProcAttr, program string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".out"), exited: make(chan struct{})}

	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("servertest: %w", err)
	}

	// Ending the servers is the caller's, so no context does it.
	command := exec.CommandContext(context.Background(), program, args...) //nolint:gosec // our own programs
	command.Dir, command.Stdout, command.Stderr, command.SysProcAttr = dir, log, log, attr
	command.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}

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
		return nil, fmt.Errorf("servertest: %s does not start: %w", name, err)
	}

	p.raw = command.Process

	return p, nil
}

// ready asks whether the server can be used until it can. It gives up when the process has ended.
func (p *process) ready(ctx context.Context, ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()

	tick := time.NewTicker(readyPause)
	defer tick.Stop()

	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}

		select {
		case <-p.exited:
			return fmt.Errorf("servertest: %s has ended: %w\n%s", p.name, errors.Join(p.err, err), p.output())
		case <-ctx.Done():
			return fmt.Errorf("servertest: %s is not ready within %v: %w\n%s", p.name, readyTimeout, err, p.output())
		case <-tick.C:
		}
	}
}

// stop lets the process end by itself, and waits for that.
func (p *process) stop(signal os.Signal) error {
	if err := p.raw.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("servertest: stop %s: %w", p.name, err)
	}

	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()

	select {
	case <-p.exited:
		return nil
	case <-timer.C:
		p.kill()

		return fmt.Errorf("servertest: %s did not stop within %v and was killed\n%s", p.name, stopTimeout, p.output())
	}
}

// kill ends the process and those below it at once, and waits for the end of the former. Those below would go on for a while,
// answer whom they are connected to, and have the sockets and the memory that the next server needs.
func (p *process) kill() {
	below := children(p.raw) // it makes no more of them
	_ = p.raw.Kill()         // it fails only when there is no process any more

	for _, child := range below {
		_ = child.Kill()
	}

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

// freePort returns a port that nobody listens on. Somebody may take it before it is used: whoever uses it must be ready to
// try again.
func freePort(ctx context.Context) (int, error) {
	var listen net.ListenConfig

	l, err := listen.Listen(ctx, "tcp", loopback+":0")
	if err != nil {
		return 0, fmt.Errorf("servertest: no free port: %w", err)
	}

	_, text, err := net.SplitHostPort(l.Addr().String())
	port, atoiErr := strconv.Atoi(text)

	if err := errors.Join(err, atoiErr, l.Close()); err != nil {
		return 0, fmt.Errorf("servertest: no free port: %w", err)
	}

	return port, nil
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
