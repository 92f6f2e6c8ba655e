package servertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// redisVersion is that of the archive; the server in it is a 6.2.
const redisVersion = "1.4.3"

// Redis is a Redis server that writes down what it is told. Tests may end it and start it again; only one goroutine at a time
// may.
type Redis struct {
	// Addr is the server's host and port, which stay the same over restarts.
	Addr string
	// Password is that of the default user.
	Password string

	dir, program string
	port         int
	process      *process
}

// StartRedis starts a server for a test, which ends it.
func StartRedis(t testing.TB) *Redis {
	t.Helper()

	r := &Redis{Password: "a-s3cret-password", dir: t.TempDir()}

	t.Cleanup(r.kill)

	if err := r.open(t.Context()); err != nil {
		t.Fatal(err)
	}

	return r
}

// URL is the address with the password, as a Redis client takes it.
func (r *Redis) URL() string {
	return (&url.URL{Scheme: "redis", User: url.UserPassword("", r.Password), Host: r.Addr, Path: "/0"}).String()
}

// Stop has the server end in order.
func (r *Redis) Stop(t testing.TB) {
	t.Helper()

	if err := r.process.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the server as a crash would.
func (r *Redis) Kill(t testing.TB) {
	t.Helper()

	r.kill()
}

// Start starts the server again after Stop or Kill, with the data that it left, and returns when it is ready.
func (r *Redis) Start(t testing.TB) {
	t.Helper()

	if err := r.serve(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (r *Redis) kill() {
	if r.process != nil {
		r.process.kill()
	}
}

func (r *Redis) open(ctx context.Context) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("servertest: no place to keep the servers: %w", err)
	}

	programs, err := redisArtifact().directory(ctx, cache)
	if err != nil {
		return err
	}

	r.program = filepath.Join(programs, "redis-server")

	for range attempts {
		if r.port, err = freePort(ctx); err != nil {
			return err
		}

		r.Addr = address(r.port)

		if err = r.serve(ctx); err == nil {
			return nil
		}
	}

	return err
}

func redisArtifact() artifact {
	return artifact{
		group: "com.github.codemonstur", name: "embedded-redis", version: redisVersion,
		unpack: func(_ context.Context, archive, to string) error {
			program, err := extract(archive, "redis-server-*-"+runtime.GOOS+"-"+runtime.GOARCH, to)
			if err != nil {
				return err
			}

			return os.Rename(program, filepath.Join(to, "redis-server"))
		},
	}
}

// serve starts the process and waits until it can be used.
func (r *Redis) serve(ctx context.Context) (err error) {
	r.process, err = launch("redis", r.dir, endWithParent(), r.program,
		"--bind", loopback, "--port", strconv.Itoa(r.port), "--dir", r.dir, "--requirepass", r.Password,
		"--save", "", "--appendonly", "yes", "--appendfsync", "no")
	if err != nil {
		return err
	}

	if err := r.process.ready(ctx, r.ready); err != nil {
		r.process.kill()

		return err
	}

	return nil
}

// ready asks the server whether it is there and has read what it has written down.
func (r *Redis) ready(ctx context.Context) error {
	var dial net.Dialer

	conn, err := dial.DialContext(ctx, "tcp", r.Addr)
	if err != nil {
		return err
	}

	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()

	_, err = io.WriteString(conn, "AUTH "+r.Password+"\r\nPING\r\n")
	answers := bufio.NewScanner(conn)

	var said []string
	for len(said) < 2 && err == nil && answers.Scan() {
		said = append(said, answers.Text())
	}

	if err := errors.Join(err, answers.Err(), conn.Close()); err != nil {
		return err
	}

	if got := strings.Join(said, " "); got != "+OK +PONG" {
		return fmt.Errorf("it answers %q", got)
	}

	return nil
}
