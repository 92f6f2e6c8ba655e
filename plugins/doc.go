// Package plugins finds transforms and sinks by name and turns their options, as a job file holds them, into typed
// structs.
//
// A [Registry] is a value that the composition root fills; nothing registers itself. Options are decoded strictly: a
// name that a plugin does not know is a mistake with a proposal, and all mistakes are reported at once, each with its
// path.
package plugins
