// Package servertest starts real PostgreSQL and Redis servers for tests: pinned versions, on free ports, with their files
// in a directory of their own, and gone when the test ends.
//
// It needs Maven (which needs Java), which fetches the servers once, and for PostgreSQL tar with xz; they are kept in the
// user's cache directory. Where something is missing the test fails and says what to install: a test that is left out holds
// nothing.
package servertest
