package wasm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/millrace/millrace/plugins"
)

// Options say which module runs, and what it may do.
type Options struct {
	// Module is the file of the module. It is read once, when the job starts.
	Module string `help:"The file of the module." option:"module,main,required"`
	// Code is the module itself, for those who have it at hand; Module is then only a name. Nil reads the file.
	Code []byte
	// Memory is how much memory an instance may have; 0 means 64 MiB. It is rounded up to pages of 64 KiB.
	Memory plugins.Size `default:"64MiB" help:"How much memory the module may have, in each lane." option:"memory"`
	// Start is how long an instance may take to get ready, after it was compiled; 0 means 10 s.
	Start plugins.Duration `default:"10s" help:"How long the module may take to get ready." option:"start"`
	// Output is how much a module may emit and set of one message, in bytes, with the copies that it makes of fields; 0 means
	// 64 MiB.
	Output plugins.Size `default:"64MiB" help:"How much the module may emit of one message." option:"output"`
	// Most is how many messages a module may make of one; 0 means 10,000.
	Most int `default:"10000" help:"How many messages the module may make of one." option:"most"`
	// Env are the variables of the module's environment. It gets none of the job's.
	Env map[string]string `help:"Variables that the module sees; of the job's own it sees none." option:"env"`
	// Dirs are the folders that the module can read: from the path that it sees to that of the folder.
	Dirs map[string]string `help:"Folders that the module can read, by the path that it sees them at." option:"dirs"`
}

const (
	page      = 64 << 10
	mostPages = 1 << 16
)

// Validate refuses what cannot run. A module that is there is looked at, too: what it lacks is a mistake in the option module.
// One that is not there may still be built.
func (o *Options) Validate() error {
	switch {
	case o.Module == "" && o.Code == nil:
		return errors.New("a module is required")
	case o.Memory < 0 || o.Memory > page*mostPages:
		return errors.New("memory is not between 64KiB and 4GiB")
	case o.Output < 0 || o.Output > math.MaxInt32:
		return errors.New("output is not between 0 and 2GiB")
	case o.Most < 0 || o.Start < 0:
		return errors.New("a limit is negative")
	}

	code, err := o.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	if err == nil {
		with := withDefaults(*o)
		err = check(context.Background(), code, with.pages())
	}

	if err != nil {
		return &plugins.OptionsError{Mistakes: []plugins.Mistake{{Path: "module", Problem: fmt.Sprintf("%s: %v", o.Module, err)}}}
	}

	return nil
}

// withDefaults fills in what is zero.
func withDefaults(o Options) Options {
	if o.Memory == 0 {
		o.Memory = 64 << 20
	}

	if o.Start == 0 {
		o.Start = plugins.Duration(10 * time.Second)
	}

	if o.Output == 0 {
		o.Output = 64 << 20
	}

	if o.Most == 0 {
		o.Most = 10_000
	}

	return o
}

// pages is the limit of memory in pages.
func (o *Options) pages() uint32 { return uint32((int64(o.Memory) + page - 1) / page) }

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Runs a WebAssembly module of your own, which sees messages and nothing else.",
		Text: "docs/wasm.md shows how to write one; for modules in Go there is a package beside the plugin. Each lane has an " +
			"instance of its own, with a limit on its memory. It has no network, none of the job's environment, and no files " +
			"but those of the folders that dirs names, which it can only read. What it prints goes to the job's log.\n\n" +
			"A module that traps, does not return before the channel's timeout or passes nonsense fails the message that it " +
			"works at, and the lane gets a new instance: what the old one had in memory is lost.",
		Example: "wasm: { module: classify.wasm, memory: 16MiB }",
		Metrics: []plugins.Metric{
			{Name: "messages", Help: "Messages that the module was called with."},
			{Name: "made", Help: "Messages that it made."},
			{Name: "refused", Help: "Messages that it refused."},
			{Name: "starts", Help: "Instances that were started."},
			{Name: "failures", Help: "How often it trapped, was stopped or passed nonsense."},
		},
	}
}
