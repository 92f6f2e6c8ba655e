package exec

import (
	"errors"
	"math"
	"time"

	"github.com/millrace/millrace/plugins"
)

// Options say which program runs, and how.
type Options struct {
	// Command is the program and its arguments. It is run as it is, not by a shell.
	Command []string `help:"The program and its arguments; no shell reads them." option:"command,main,required"`
	// Dir is where the program runs; empty means where the job runs.
	Dir string `help:"Where the program runs; by default where the job does." option:"dir"`
	// Env are variables of the program's environment. Of the job's own it gets PATH, HOME, LANG, TZ and TMPDIR only.
	Env map[string]string `help:"Variables of the program, beside PATH, HOME, LANG, TZ and TMPDIR of the job." option:"env"`
	// Start is how long the program may take to say hello; 0 means 10 s.
	Start plugins.Duration `default:"10s" help:"How long the program may take to say hello." option:"start"`
	// Restart is how long the first wait is before a program that has ended is started again; it doubles from failure to
	// failure, up to 100 times of it. 0 means 100 ms.
	Restart plugins.Duration `default:"100ms" help:"The first wait before an ended program is started again." option:"restart"`
	// Frame is how large a frame may be, in both directions; 0 means 64 MiB. A message that does not fit is rejected.
	Frame plugins.Size `default:"64MiB" help:"How large a frame may be; a message that does not fit is rejected." option:"frame"`
	// Most is how many messages the program may make of one; 0 means 10,000.
	Most int `default:"10000" help:"How many messages the program may make of one." option:"most"`
}

const minFrame = 4 << 10

// Validate refuses what cannot run.
func (o *Options) Validate() error {
	switch {
	case len(o.Command) == 0 || o.Command[0] == "":
		return errors.New("the command names no program")
	case o.Frame != 0 && (o.Frame < minFrame || o.Frame > math.MaxInt32):
		return errors.New("frame is not between 4 KiB and 2 GiB")
	case o.Most < 0 || o.Start < 0 || o.Restart < 0:
		return errors.New("a limit is negative")
	}

	return nil
}

// withDefaults fills in what is zero.
func withDefaults(o Options) Options {
	if o.Start == 0 {
		o.Start = plugins.Duration(10 * time.Second)
	}

	if o.Restart == 0 {
		o.Restart = plugins.Duration(100 * time.Millisecond)
	}

	if o.Frame == 0 {
		o.Frame = 64 << 20
	}

	if o.Most == 0 {
		o.Most = 10_000
	}

	return o
}

// Doc is what the plugin says of itself as a gather stage.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Sends batches to a program of your own, in any language, and goes on with what it makes of them.",
		Text: "Each lane runs the program once and talks to it over its standard input and output, in the frames that " +
			"docs/exec.md describes; in Python, the package beside the plugin does that. What the program writes to its " +
			"standard error goes to the job's log.\n\n" +
			"A program that ends or does not answer in time fails the batch, and is started again. When the batch comes back, " +
			"its messages are sent one by one, so that a message that the program cannot bear fails alone. Messages that the " +
			"program refuses fail alone, too.\n\n" +
			"As a gather stage it sees whole batches, which is what makes it fast, and what it makes of a batch is finished " +
			"together. As a transform it gets one message at a time.",
		Example: "exec: { command: [python3, classify.py], env: { MODEL: small } }",
		Metrics: []plugins.Metric{
			{Name: "messages", Help: "Messages sent to the program."},
			{Name: "made", Help: "Messages that it made."},
			{Name: "refused", Help: "Messages that it refused."},
			{Name: "starts", Help: "How often it was started."},
			{Name: "failures", Help: "How often it ended, did not answer in time or answered nonsense."},
		},
	}
}
