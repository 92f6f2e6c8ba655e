package routes

import (
	"errors"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// Errors of asking name servers. Each comes wrapped in words that say what to do.
var (
	// ErrUnreachable is returned when no name server answers, or when they know no address of a broker.
	ErrUnreachable = errors.New("rocketmq: unreachable")
	// ErrNoPermission is returned when a server does not let us: by its own settings, or for who we are.
	ErrNoPermission = errors.New("rocketmq: no permission")
)

// Code returns the code that a server answered with, or -1 when err is no answer.
func Code(err error) int {
	if refused, ok := errors.AsType[*remoting.ResponseError](err); ok {
		return refused.Code
	}

	return -1
}
