// Package control lets the commands of millrace talk to the process that has an embedded broker open: HTTP on a Unix socket,
// which only the user of that process can reach. Whoever opens a broker serves it, so that a topic can be filled, read and
// described while jobs run on it, and a running job can be asked why it stands still.
package control
