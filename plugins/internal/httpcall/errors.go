package httpcall

import (
	"fmt"
	"net/http"
)

// StatusError is an answer with a status that is not accepted.
type StatusError struct {
	// Place is the method and the URL without its secrets.
	Place string
	// Status is what the server said, Text how its answer begins, Location where a redirection points to.
	Status         int
	Text, Location string
}

var _ error = (*StatusError)(nil)

// Error says what was answered, and how.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s: answered %d %s", e.Place, e.Status, http.StatusText(e.Status))

	switch {
	case e.Location != "":
		return text + fmt.Sprintf("; it is at %q now, redirections are not followed", e.Location)
	case e.Text != "":
		return text + fmt.Sprintf(": %q", e.Text)
	default:
		return text
	}
}

// UnreachableError is a call without an answer.
type UnreachableError struct {
	// Place is the method and the URL without its secrets.
	Place string
	// Err is why.
	Err error
}

var _ error = (*UnreachableError)(nil)

// Error says who did not answer, and why.
func (e *UnreachableError) Error() string { return e.Place + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }
