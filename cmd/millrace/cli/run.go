package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/pipeline/tracing"
	"github.com/millrace/millrace/plugins"
)

// runFlags are the flags of run.
type runFlags struct {
	untilEnd, quiet, asJSON, verbose bool

	drain    time.Duration
	instance string
	admin    string
	share    float64
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags

	cmd := &cobra.Command{
		Use:     "run [FILE]...",
		Short:   "Run the jobs of job files until they are told to stop",
		GroupID: groupJobs,
		Long: `Run runs the jobs of one or several files, which name the same broker. Topics that they need and that are not
there are made, unless the file lists the broker's topics itself. On a terminal progress is drawn in place, elsewhere a line is
printed now and then; both go to the error output, so that the output belongs to the jobs. While they run, all other commands
work on the same broker: produce, consume, topics, offsets, status, why.

^C (or SIGTERM) drains: nothing new is pulled, what is in flight is finished and committed, for up to --drain. A second one stops
at once. Either way it is said what is left unfinished; it comes again. The exit code is 0 when nothing is, 4 when something is,
130 after a second ^C.

With --trace, spans of OpenTelemetry follow messages through stages, gathers and sinks. They go by OTLP over HTTP to a collector
on this machine, or to where OTEL_EXPORTER_OTLP_ENDPOINT says. Messages that bring a trace in their property traceparent follow
it.

With --admin, an HTTP endpoint tells health, metrics and why offsets stand, and takes pauses, seeks and drains. An address that is
not a loopback one needs a token of at least 16 bytes in the variable MILLRACE_ADMIN_TOKEN.

FILE is job.yaml when none is named.`,
		Example: `  millrace run
  millrace run quakes.yaml alerts.yaml
  millrace run --until-end --quiet backfill.yaml
  millrace run --admin 127.0.0.1:7411
  millrace run --trace 0.01`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), filesOf(args), f) },
	}

	cmd.Flags().BoolVar(&f.untilEnd, "until-end", false, "drain and end when everything that is published is worked off")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "show errors only")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "write what happens as lines of JSON to the output")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show also what is logged for information")
	cmd.Flags().DurationVar(&f.drain, "drain", 30*time.Second, "how long work in flight may take after the first ^C")
	cmd.Flags().StringVar(&f.instance, "instance", "", "this member's `name` in the consumer groups; broadcast jobs need one")
	cmd.Flags().Float64Var(&f.share, "trace", 0, "trace this `share` of the messages, from 0 to 1, such as 0.01")
	cmd.Flags().StringVar(&f.admin, "admin", "", "serve the admin endpoint at this `address`, such as 127.0.0.1:7411")

	return cmd
}

// heapRoom is what a run holds and never touches, so that the collector does not begin anew every 4 MiB when a job keeps little.
const heapRoom = 64 << 20

// session is one run of jobs.
type session struct {
	*app
	runFlags

	screen *screen
	redact jobfile.Redactor
	broker *ground
	log    *zap.Logger
	jobs   []*running
	served admin.Jobs
	// tracing says how jobs are traced; without a tracer they are not.
	tracing tracing.Options
	began   time.Time
	// telling is held by who writes an event to the output.
	telling sync.Mutex
}

// running is a job of a session.
type running struct {
	*actors.Running

	name string
	// told: it has been said that it runs.
	told bool
	// last is the snapshot that was shown last.
	last *actors.Snapshot
	// report is how it ended.
	report *actors.Report
}

func (a *app) run(ctx context.Context, names []string, f runFlags) error {
	if f.share < 0 || f.share > 1 {
		return usagef("run: --trace is %v; it is a share of the messages, from 0 (none) to 1 (all)", f.share)
	}

	if f.drain <= 0 {
		return usagef("run: --drain is %v; use a time above 0, or ^C twice to stop at once", f.drain)
	}

	files, err := a.load(names)
	if err != nil {
		return err
	}

	if err := sameBroker(files); err != nil {
		return err
	}

	if f.untilEnd && files[0].Broker.Embedded == nil {
		return usagef("run: --until-end needs the embedded broker; others do not say what is still to come")
	}

	defer runtime.KeepAlive(make([]byte, heapRoom))

	s := &session{app: a, runFlags: f}

	for _, file := range files {
		s.redact = s.redact.And(file.Redactor)
	}

	s.screen = newScreen(a.Err, s.redact.Writer(a.Err), f.quiet || f.asJSON)
	if printsToTerminal(a.Out, files) {
		s.screen.terminal = nil // what sinks print would be drawn over
	}

	s.log = logger(s.screen, f.verbose)

	if s.broker, err = openGround(files[0].Broker, s.log); err != nil { //nolint:contextcheck // opening and closing take none
		return err
	}

	err = s.run(ctx, files)

	if err = errors.Join(err, s.broker.close()); err == nil {
		return nil
	}

	// Errors of plugins and of the broker may have what variables have put into the file.
	return s.redacted(err)
}

// printsToTerminal reports whether a sink of the jobs writes to the output, which is a terminal.
func printsToTerminal(out io.Writer, files []*jobfile.File) bool {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false
	}

	for _, file := range files {
		for _, job := range file.Jobs {
			if slices.ContainsFunc(job.Sinks(), func(u jobfile.SinkUse) bool { return u.Plugin == "stdout" }) {
				return true
			}
		}
	}

	return false
}

// redacted returns an error with the same exit code whose text has no secrets.
func (s *session) redacted(err error) error {
	code := ExitFailed

	if coded, ok := errors.AsType[*codeError](err); ok {
		if coded.err == nil {
			return coded
		}

		code = coded.code
	}

	return &codeError{code: code, err: errors.New(s.redact.Redact(err.Error()))}
}

// sameBroker refuses files with several brokers.
func sameBroker(files []*jobfile.File) error {
	first := files[0]

	for _, f := range files[1:] {
		if !reflect.DeepEqual(likened(first.Broker), likened(f.Broker)) {
			return fmt.Errorf("%s and %s name different brokers; run them by a command each", first.Name, f.Name)
		}
	}

	return nil
}

// likened returns a broker without what may differ between files that name the same one.
func likened(b jobfile.Broker) jobfile.Broker {
	if b.Embedded != nil {
		e := *b.Embedded
		e.Dir, e.Topics = filepath.Clean(e.Dir), nil
		b.Embedded = &e
	}

	return b
}

// logger returns a logger that writes to the screen.
func logger(s *screen, verbose bool) *zap.Logger {
	level := zap.ErrorLevel // what is worth a warning is told as an event
	if verbose {
		level = zap.InfoLevel
	}

	encoder := zap.NewDevelopmentEncoderConfig()
	encoder.EncodeTime = zapcore.TimeEncoderOfLayout(time.TimeOnly)

	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(encoder), zapcore.AddSync(s), level))
}

func (s *session) run(ctx context.Context, files []*jobfile.File) (err error) {
	if s.admin != "" {
		stop, err := s.serveAdmin() //nolint:contextcheck // what is served ends with stop, not with a context
		if err != nil {
			return err
		}

		defer func() { err = errors.Join(err, stop()) }()
	}

	if s.share > 0 {
		stop, err := s.traceJobs(ctx)
		if err != nil {
			return err
		}

		defer func() { _ = stop(context.WithoutCancel(ctx)) }() // that it fails was told
	}

	for _, file := range files {
		if s.broker.embedded == nil {
			break // topics of other brokers are their operators' business
		}

		if err := makeTopics(ctx, s.broker.embedded.Broker, file, s.screen.notef); err != nil {
			return err
		}
	}

	if err := s.start(files); err != nil {
		s.drainAll(-1)

		return err
	}

	interrupted := s.watch(ctx)

	return s.finish(ctx, interrupted)
}

// start starts the jobs, the last one first, since it may take what the ones before it publish.
func (s *session) start(files []*jobfile.File) error {
	s.began = time.Now()
	env := plugins.Env{Log: s.log, Publisher: s.broker}

	var jobs []*jobfile.Job
	for _, file := range files {
		jobs = append(jobs, file.Jobs...)
	}

	s.jobs = make([]*running, 0, len(jobs))

	for _, job := range slices.Backward(jobs) {
		built, err := job.Build(env)
		if err != nil {
			return err //nolint:wrapcheck // it says where it is from
		}

		if s.tracing.Tracer != nil {
			built = tracing.Job(built, s.tracing)
		}

		r, err := actors.Start(built, s.broker, actors.Options{
			Logger: s.log, DrainBudget: s.drain, Instance: s.instance,
		})
		if err != nil {
			return err //nolint:wrapcheck // as above
		}

		r.OnEvent(s.tell)
		s.jobs = append([]*running{{Running: r, name: job.Name}}, s.jobs...)
		s.served.Add(r)
		s.broker.serve(control.Job{Group: job.Group(), Running: r, Redact: s.redact.Redact})
	}

	return nil
}
