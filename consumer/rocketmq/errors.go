package rocketmq

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
)

// Errors of joining and reading. Each comes wrapped in words that say what to do.
var (
	// ErrUnreachable is returned when no name server, or no broker of a topic, can be reached.
	ErrUnreachable = routes.ErrUnreachable
	// ErrNoPermission is returned when a server does not let us: by its own settings, or for who we are.
	ErrNoPermission = routes.ErrNoPermission
	// ErrUnknownGroup is returned when a group does not exist and the brokers do not make groups by themselves.
	ErrUnknownGroup = errors.New("rocketmq: unknown group")
	// ErrBadFilter is returned by Join when a broker cannot filter as the subscription wishes.
	ErrBadFilter = errors.New("rocketmq: filter refused")
	// ErrBroadcast is returned for what broadcasting members cannot do.
	ErrBroadcast = errors.New("rocketmq: not for a broadcasting member")
)

// explain puts words around what a broker said to a group.
func explain(group string, err error) error {
	switch routes.Code(err) {
	case remoting.GroupNotExist:
		return fmt.Errorf("%w %q: create it (mqadmin updateSubGroup), or let brokers do it (autoCreateSubscriptionGroup): %w",
			ErrUnknownGroup, group, err)
	case remoting.NoPermission:
		return fmt.Errorf("%w for group %q: it may be switched off, the topic or the broker may be closed to readers, "+
			"or the credentials may not be allowed to read: %w", ErrNoPermission, group, err)
	default:
		return fmt.Errorf("rocketmq: group %q: %w", group, err)
	}
}
