package admin

import (
	"errors"
	"fmt"
	"net/http"
)

// Problem is the answer to a request that failed.
type Problem struct {
	// Error says what is wrong, and what to do about it.
	Error string `json:"error"`
}

const (
	statusNotFound = http.StatusNotFound
	statusBad      = http.StatusBadRequest
)

// failure is an error with the status of its answer.
type failure struct {
	status int
	text   string
}

var _ error = (*failure)(nil)

// Error returns the text.
func (f *failure) Error() string { return f.text }

// failf returns an error that is answered with a status. Others are answered with 422.
func failf(status int, format string, args ...any) error {
	return &failure{status: status, text: fmt.Sprintf(format, args...)}
}

// statusOf returns the status that an error is answered with.
func statusOf(err error) int {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.status
	}

	return http.StatusUnprocessableEntity
}
