package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/standard"
)

// TestMain keeps sockets for directories with long paths out of the user's caches.
func TestMain(m *testing.M) {
	caches, err := os.MkdirTemp("", "m")
	if err != nil {
		panic(err)
	}

	if err := os.Setenv("XDG_CACHE_HOME", caches); err != nil {
		panic(err)
	}

	throttle := goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1")

	goleak.VerifyTestMain(m, throttle, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(caches)

		os.Exit(code)
	}))
}

// world is a directory with job files, and a broker when something has made one.
type world struct {
	t   *testing.T
	dir string
	// broker is what commands are told to work on.
	broker string
	// variables are those of the environment, beside PASSWORD.
	variables map[string]string
	// plugins are those of the test, beside the standard ones.
	plugins func(*plugins.Registry) error
}

func setup(t *testing.T) *world {
	t.Helper()

	dir := t.TempDir()

	return &world{t: t, dir: dir, broker: filepath.Join(dir, "data")}
}

// path returns the path of a file of the world.
func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// write writes a file; DIR in it stands for the world's directory.
func (w *world) write(name, text string) string {
	w.t.Helper()

	path := w.path(name)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", w.dir)), 0o600); err != nil {
		w.t.Fatal(err)
	}

	return path
}

// call is one call of the command.
type call struct {
	code     int
	out, err string
}

// do runs the command with an input.
func (w *world) do(input string, args ...string) call {
	w.t.Helper()

	var out, errs bytes.Buffer

	c := w.command(strings.NewReader(input), &out, &errs, nil)
	code := c.Run(w.t.Context(), w.onBroker(args)...)

	return call{code: code, out: out.String(), err: errs.String()}
}

// ok runs the command, which must succeed, and returns its output.
func (w *world) ok(input string, args ...string) string {
	w.t.Helper()

	c := w.do(input, args...)
	if c.code != cli.ExitOK {
		w.t.Fatalf("millrace %s: exit code %d\n%s%s", strings.Join(args, " "), c.code, c.out, c.err)
	}

	return c.out
}

// onBroker adds the flag that names the world's broker where the command has one.
func (w *world) onBroker(args []string) []string {
	switch args[0] {
	case "produce", "consume", "topics", "offsets", "status", "why", "pause", "resume", "seek", "drain", "dlq":
		return append([]string{args[0], "--broker", w.broker}, args[1:]...)
	default:
		return args
	}
}

// command returns the command with the world's variables.
func (w *world) command(in io.Reader, out, errs io.Writer, interrupts <-chan os.Signal) *cli.Command {
	c := command(in, out, errs, interrupts)
	lookup := c.Variables.Lookup
	c.Variables.Lookup = func(name string) (string, bool) {
		if v, ok := w.variables[name]; ok {
			return v, true
		}

		return lookup(name)
	}

	if w.plugins != nil {
		c.Register = append(c.Register, w.plugins)
	}

	return c
}

// job is a command that runs beside the test.
type job struct {
	t          *testing.T
	interrupts chan os.Signal
	out, err   *watched
	ended      chan int
}

// start runs the command beside the test; it must have ended when the test ends.
func (w *world) start(args ...string) *job {
	w.t.Helper()

	return w.startWith(nil, args...)
}

// startWith starts the command with variables.
func (w *world) startWith(variables map[string]string, args ...string) *job {
	w.t.Helper()

	j := &job{
		t: w.t, interrupts: make(chan os.Signal, 4), out: newWatched(), err: newWatched(), ended: make(chan int, 1),
	}
	c := w.command(strings.NewReader(""), j.out, j.err, j.interrupts)

	if variables != nil {
		c.Variables.Lookup = lookup(variables)
	}

	go func() { j.ended <- c.Run(context.WithoutCancel(w.t.Context()), w.onBroker(args)...) }()

	return j
}

// interrupt does what ^C does.
func (j *job) interrupt() { j.interrupts <- os.Interrupt }

// end waits for the end and returns the exit code.
func (j *job) end() int {
	j.t.Helper()

	select {
	case code := <-j.ended:
		return code
	case <-j.t.Context().Done():
		j.t.Fatalf("it did not end:\n%s", j.err.String())

		return -1
	}
}

// watched is a buffer that tells when a text has been written to it.
type watched struct {
	mu      sync.Mutex
	text    bytes.Buffer  // guarded by mu
	changed chan struct{} // closed, and replaced, with every write; guarded by mu
}

func newWatched() *watched { return &watched{changed: make(chan struct{})} }

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.text.Write(p)
	close(w.changed)
	w.changed = make(chan struct{})

	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.text.String()
}

// await waits until a text has been written.
func (w *watched) await(t *testing.T, text string) {
	t.Helper()

	for {
		w.mu.Lock()
		found, changed := strings.Contains(w.text.String(), text), w.changed
		w.mu.Unlock()

		if found {
			return
		}

		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("nobody wrote %q, only:\n%s", text, w.String())
		}
	}
}

// next waits until something more has been written.
func (w *watched) next(t *testing.T) {
	t.Helper()

	w.mu.Lock()
	changed := w.changed
	w.mu.Unlock()

	select {
	case <-changed:
	case <-t.Context().Done():
		t.Fatalf("nobody wrote more than:\n%s", w.String())
	}
}

// command returns the command with the standard plugins and those of the tests.
func command(in io.Reader, out, errs io.Writer, interrupts <-chan os.Signal) *cli.Command {
	return &cli.Command{
		Register: []func(*plugins.Registry) error{standard.Register, register},
		In:       in, Out: out, Err: errs, Interrupts: interrupts,
		Variables: jobfile.Variables{
			Lookup: lookup(map[string]string{"PASSWORD": "hunter2"}),
			ReadFile: func(name string) ([]byte, error) {
				if filepath.Base(name) != "token" {
					return nil, fs.ErrNotExist
				}

				return os.ReadFile(filepath.Clean(name))
			},
		},
	}
}

// lookup finds variables.
func lookup(variables map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := variables[name]

		return v, ok
	}
}

type noOptions struct{}

type failOptions struct {
	With string `option:"with,main"`
}

// register adds the plugins of the tests: stall holds a message as long as it may, fail fails, upper does what it says.
func register(r *plugins.Registry) error {
	transform := func(f pipeline.TransformFunc) func(plugins.Env, noOptions) (pipeline.Transform, error) {
		return func(plugins.Env, noOptions) (pipeline.Transform, error) { return f, nil }
	}

	return errors.Join(
		plugins.AddTransform(r, "stall", plugins.Doc{Summary: "Never ends."},
			transform(func(ctx context.Context, _ *pipeline.Message, _ pipeline.Emit) error {
				<-ctx.Done()

				return ctx.Err()
			})),
		plugins.AddTransform(r, "upper", plugins.Doc{Summary: "Makes letters great.", Example: "upper: {}"},
			transform(func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				m.Body = bytes.ToUpper(m.Body)

				return emit(m)
			})),
		plugins.AddTransform(r, "fail", plugins.Doc{Summary: "Fails."},
			func(_ plugins.Env, o failOptions) (pipeline.Transform, error) {
				return pipeline.TransformFunc(func(context.Context, *pipeline.Message, pipeline.Emit) error {
					return pipeline.Reject(fmt.Errorf("no entry with %s", o.With))
				}), nil
			}),
	)
}

const upperJob = `
name: upper
broker: { embedded: DIR/data }
source: { topic: in }
channels:
  work:
    order: key
    stages: [upper]
    sink: { topic: { name: out } }
`
