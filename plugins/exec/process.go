package exec

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"slices"
	"time"

	"go.uber.org/zap"
)

// process is a program that runs. It belongs to one goroutine.
type process struct {
	cmd *osexec.Cmd
	in  *os.File
	out *os.File
	// from buffers out.
	from *bufio.Reader
	errs *os.File
	// logged is closed when all that the program wrote to its standard error is in the log.
	logged chan struct{}
	buffer []byte
}

// run starts the program and exchanges hellos.
func run(ctx context.Context, o *Options, w *writer, log *zap.Logger) (*process, error) {
	p, err := launch(o, log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Command[0], err)
	}

	hello, err := w.hello(int(o.Frame))
	if err != nil {
		return nil, errors.Join(err, p.kill())
	}

	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.Start))
	defer cancel()

	answer, err := p.exchange(ctx, hello, int(o.Frame))
	if err == nil {
		err = readHello(answer)
	}

	if err != nil {
		return nil, p.end(fmt.Errorf("hello of %s: %w", o.Command[0], err))
	}

	return p, nil
}

// launch starts the program with three pipes.
func launch(o *Options, log *zap.Logger) (*process, error) {
	var theirs, ours [3]*os.File

	closeAll := func(files [3]*os.File) {
		for _, f := range files {
			_ = f.Close() // a pipe; nil is fine
		}
	}

	for i := range ours {
		read, write, err := os.Pipe()
		if err != nil {
			closeAll(theirs)
			closeAll(ours)

			return nil, err //nolint:wrapcheck // the caller puts the place around it
		}

		if i == 0 {
			theirs[i], ours[i] = read, write
		} else {
			theirs[i], ours[i] = write, read
		}
	}

	//nolint:gosec,noctx // the command is the operator's, and it ends by kill, with all that it has started
	cmd := osexec.Command(o.Command[0], o.Command[1:]...)
	cmd.Dir, cmd.Env = o.Dir, environment(o.Env)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	cmd.SysProcAttr = ownGroup()

	err := cmd.Start()

	closeAll(theirs)

	if err != nil {
		closeAll(ours)

		return nil, err //nolint:wrapcheck // as above
	}

	p := &process{
		cmd: cmd, in: ours[0], out: ours[1], errs: ours[2], from: bufio.NewReaderSize(ours[1], 64<<10),
		logged: make(chan struct{}),
	}

	go func() {
		defer close(p.logged)

		logLines(p.errs, log.With(zap.Int("pid", cmd.Process.Pid)))
	}()

	return p, nil
}

// environment is the part of our own that a program needs to be found and to speak, and what the options add.
func environment(more map[string]string) []string {
	env := []string{}

	for _, name := range []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR", "SYSTEMROOT"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}

	for name, value := range more {
		env = append(env, name+"="+value)
	}

	slices.Sort(env[len(env)-len(more):])

	return env
}

// logLines logs what comes, line by line; a line that is too long is several.
func logLines(from io.Reader, log *zap.Logger) {
	const longest = 4 << 10

	lines := bufio.NewReaderSize(from, longest)

	for {
		line, _, err := lines.ReadLine()
		if len(line) > 0 {
			log.Info(string(line))
		}

		if err != nil {
			return // the program has ended
		}
	}
}

// exchange sends a frame and returns the answer, which is valid until the next call. When the context ends first, it fails
// with the context's error. After an error, the program is of no use any more.
func (p *process) exchange(ctx context.Context, frame []byte, limit int) ([]byte, error) {
	past := time.Unix(1, 0)
	stop := context.AfterFunc(ctx, func() {
		_ = p.in.SetWriteDeadline(past) // of a pipe that is open, or closed for good
		_ = p.out.SetReadDeadline(past)
	})

	payload, err := p.swap(frame, limit)

	if !stop() {
		return nil, ctx.Err() // the pipes have deadlines now, so even an answer that came is the last one
	}

	const keep = 4 << 20
	if p.buffer = payload; cap(payload) > keep {
		p.buffer = nil
	}

	return payload, err
}

func (p *process) swap(frame []byte, limit int) ([]byte, error) {
	if _, err := p.in.Write(frame); err != nil {
		return nil, fmt.Errorf("sending: %w", err)
	}

	return readFrame(p.from, p.buffer, limit)
}

// end kills a program that has failed and adds to the error how it ended, where that is the reason.
func (p *process) end(err error) error {
	status := p.kill()

	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) || isBrokenPipe(err) {
		if status == nil {
			return fmt.Errorf("the program has ended: %w", err)
		}

		return fmt.Errorf("the program has ended: %w", status)
	}

	return err
}

// grace is how long a program may take to end by itself; a guess.
const grace = 2 * time.Second

// leave lets the program end by itself, by the end of its input, and kills what is left of it then.
func (p *process) leave() {
	_ = p.in.Close() // what was in it is taken, or nobody wants it

	_ = p.out.SetReadDeadline(time.Now().Add(grace))
	_, _ = io.Copy(io.Discard, p.from) // until the program closes its output, or the deadline
	_ = p.kill()
}

// kill ends the program and all that it has started, and waits for it. The program is not waited for before that: as long
// as nobody has, its id and that of its group cannot be given to others. It returns how the program ended.
func (p *process) kill() error {
	killGroup(p.cmd.Process)

	// Somebody may have left the group and hold the other ends of our pipes.
	_ = p.errs.SetReadDeadline(time.Now().Add(grace))
	err := p.cmd.Wait()

	<-p.logged

	for _, f := range []*os.File{p.in, p.out, p.errs} {
		_ = f.Close() // a pipe
	}

	if err != nil {
		return err //nolint:wrapcheck // "exit status 3" says it all
	}

	return nil
}
