package wasm

import (
	"errors"

	"github.com/millrace/millrace/plugins"
)

// Options say which module runs, and what it may do.
type Options struct {
	// Module is the file of the module, or nil Code is read from it.
	Module string `help:"The file of the module." option:"module,main,required"`
	// Code is the module itself, for those who have it at hand; Module is then only a name.
	Code []byte
	// Memory is how much memory an instance may have; 0 means 64 MiB. It is rounded up to pages of 64 KiB.
	Memory plugins.Size `default:"64MiB" help:"How much memory an instance may have." option:"memory"`
	// Output is how much a module may emit of one message, in bytes; 0 means 64 MiB.
	Output plugins.Size `default:"64MiB" help:"How much a module may emit of one message." option:"output"`
	// Most is how many messages a module may emit of one; 0 means 10,000.
	Most int `default:"10000" help:"How many messages a module may emit of one." option:"most"`
	// Env are the variables of the module's environment. It gets none of the job's.
	Env map[string]string `help:"Variables that the module sees; of the job's own it sees none." option:"env"`
	// Dirs are the folders that the module can read: from the path that it sees to that of the folder.
	Dirs map[string]string `help:"Folders that the module can read, by the path that it sees them at." option:"dirs"`
}

const (
	page      = 64 << 10
	mostPages = 1 << 16
)

// Validate refuses limits that are none.
func (o *Options) Validate() error {
	switch {
	case o.Module == "" && o.Code == nil:
		return errors.New("a module is required")
	case o.Memory < 0 || o.Memory > page*mostPages:
		return errors.New("memory is not between 64 KiB and 4 GiB")
	case o.Output < 0 || o.Most < 0:
		return errors.New("a limit is negative")
	}

	return nil
}

// withDefaults fills in what is zero.
func withDefaults(o Options) Options {
	if o.Memory == 0 {
		o.Memory = 64 << 20
	}

	if o.Output == 0 {
		o.Output = 64 << 20
	}

	if o.Most == 0 {
		o.Most = 10_000
	}

	return o
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Runs a WebAssembly module, which sees messages and nothing else.",
		Text: "docs/wasm.md describes how a module and the plugin talk; for modules in Go there is a package beside the " +
			"plugin. Each lane has an instance of its own, with a limit on its memory. It has no network, none of the job's " +
			"environment, and no files but those of the folders that dirs names, which it can only read.\n\n" +
			"A module that runs at the channel's timeout is stopped. After that, and after a trap, the message fails and the " +
			"lane gets a new instance: what the old one had in memory is lost. What the module prints goes to the job's log.",
		Example: "wasm: { module: classify.wasm, memory: 16MiB }",
		Metrics: []plugins.Metric{
			{Name: "messages", Help: "Messages that the module has worked at."},
			{Name: "made", Help: "Messages that it made."},
			{Name: "refused", Help: "Messages that it refused."},
			{Name: "instances", Help: "Instances made."},
			{Name: "traps", Help: "Instances that trapped or were stopped."},
		},
	}
}
