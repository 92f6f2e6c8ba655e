// Package jobfile reads job files: YAML that says in one place what a job consumes, what it does and where it writes.
//
// A file is checked as a whole. Every mistake in it is reported at once, with its place and its cure, and a file without
// mistakes is one that runs, as far as that can be known without running it.
package jobfile
