// Package admin serves a process's jobs to those who look after them: over HTTP, for people, scrapers and probes. It can say
// at every moment why an offset does not move, and it can pause, resume, seek and drain.
//
// [Serve] listens on an address, which is a loopback one unless there is a token. [NewHandler] is the same for a listener of
// your own. docs/admin.md has the whole of it.
package admin
