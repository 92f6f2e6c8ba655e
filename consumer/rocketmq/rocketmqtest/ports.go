package rocketmqtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// loopback is where all servers listen: nobody else has business with them.
const loopback = "127.0.0.1"

// Other ports that a broker opens beside the one that it listens on.
const (
	fastOffset        = -2
	replicationOffset = +1
)

// freePort returns a port that nobody listens on, nor on the ones at the offsets from it. Somebody may take it before it is
// used: whoever uses it must be ready to try again.
func freePort(ctx context.Context, offsets ...int) (int, error) {
	var last error

	for range 50 {
		port, err := tryPort(ctx, offsets)
		if err == nil {
			return port, nil
		}

		last = err
	}

	return 0, fmt.Errorf("rocketmqtest: no free ports: %w", last)
}

func tryPort(ctx context.Context, offsets []int) (port int, err error) {
	var listen net.ListenConfig

	first, err := listen.Listen(ctx, "tcp", ":0")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, first.Close()) }()

	_, text, err := net.SplitHostPort(first.Addr().String())
	if err != nil {
		return 0, err
	}

	if port, err = strconv.Atoi(text); err != nil {
		return 0, err
	}

	for _, offset := range offsets {
		other, err := listen.Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port+offset)))
		if err != nil {
			return 0, err
		}

		if err := other.Close(); err != nil {
			return 0, err
		}
	}

	return port, nil
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
