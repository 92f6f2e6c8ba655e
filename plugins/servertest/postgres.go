package servertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// postgresVersion is the server that tests meet.
const postgresVersion = "17.5.0"

// Postgres is a PostgreSQL server with one database and one user, who may do anything. Tests may end it and start it again;
// only one goroutine at a time may.
type Postgres struct {
	// Addr is the server's host and port, which stay the same over restarts.
	Addr string
	// User, Password and Database are what to connect with.
	User, Password, Database string

	dir, programs string
	port          int
	process       *process
}

const (
	// postgresPrefix is what the names of the servers' directories begin with.
	postgresPrefix = "millrace-postgres-"
	// stale is the age from which on a directory is nobody's: no test lasts that long.
	stale = 24 * time.Hour
)

// sweep removes what tests have left in a directory that were killed before they could do so themselves.
func sweep(parent string) {
	left, err := filepath.Glob(filepath.Join(parent, postgresPrefix+"*"))
	if err != nil {
		return
	}

	for _, dir := range left {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && time.Since(info.ModTime()) > stale {
			_ = os.RemoveAll(dir) // which may be another user's
		}
	}
}

// StartPostgres starts a server for a test, which ends it.
func StartPostgres(t testing.TB) *Postgres {
	t.Helper()

	sweep(os.TempDir()) //nolint:usetesting // as said below

	// Not t.TempDir, into which only root could look where the server has to run as nobody.
	dir, err := os.MkdirTemp(os.TempDir(), postgresPrefix) //nolint:usetesting // as said above
	if err != nil {
		t.Fatal(err)
	}

	p := &Postgres{User: "miller", Password: "a s3cret/pass:word", Database: "postgres", dir: dir}

	t.Cleanup(func() {
		p.kill()

		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})

	if err := p.open(t.Context()); err != nil {
		t.Fatal(err)
	}

	return p
}

// DSN is the address with user and password, as a PostgreSQL client takes it.
func (p *Postgres) DSN() string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(p.User, p.Password), Host: p.Addr, Path: "/" + p.Database,
		RawQuery: "sslmode=disable",
	}).String()
}

// Stop has the server end in order: it breaks off what is under way, and disconnects everybody.
func (p *Postgres) Stop(t testing.TB) {
	t.Helper()

	if err := p.process.stop(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the server as a crash would.
func (p *Postgres) Kill(t testing.TB) {
	t.Helper()

	p.kill()
}

// Start starts the server again after Stop or Kill, with the data that it left, and returns when it is ready.
func (p *Postgres) Start(t testing.TB) {
	t.Helper()

	if err := p.serve(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// kill ends the process, and waits until those below it, which may have its socket, are gone from there too.
func (p *Postgres) kill() {
	if p.process == nil {
		return
	}

	p.process.kill()

	for end := time.Now().Add(stopTimeout); time.Now().Before(end); <-time.After(readyPause) {
		conn, err := net.Dial("tcp", p.Addr) //nolint:noctx // nobody listens, or somebody near does
		if err != nil {
			return
		}

		_ = conn.Close()
	}
}

// open makes the database and starts the server for the first time.
func (p *Postgres) open(ctx context.Context) error {
	cache, err := publicCache()
	if err != nil {
		return fmt.Errorf("servertest: no place to keep the servers: %w", err)
	}

	if p.programs, err = postgresArtifact().directory(ctx, cache); err != nil {
		return err
	}

	if err := p.initialize(ctx); err != nil {
		return err
	}

	for range attempts {
		if p.port, err = freePort(ctx); err != nil {
			return err
		}

		p.Addr = address(p.port)

		if err = p.serve(ctx); err == nil {
			return nil
		}
	}

	return err
}

func postgresArtifact() artifact {
	platform := map[string]string{"386": "i386", "arm64": "arm64v8", "arm": "arm32v7"}[runtime.GOARCH]
	if platform == "" {
		platform = runtime.GOARCH
	}

	return artifact{
		group: "io.zonky.test.postgres", name: "embedded-postgres-binaries-" + runtime.GOOS + "-" + platform,
		version: postgresVersion,
		unpack: func(ctx context.Context, archive, to string) error {
			packed, err := extract(archive, "postgres-*.txz", to)
			if err != nil {
				return err
			}

			output, err := run(ctx, nil, "tar", "--no-same-owner", "-xJf", packed, "-C", to)
			if errors.Is(err, errMissing) || strings.Contains(string(output), "xz:") {
				return fmt.Errorf("tar and xz are needed; install them (Debian: apt-get install tar xz-utils)\n%s", output)
			}

			return errors.Join(err, os.Remove(packed))
		},
	}
}

// initialize makes the directory that the server keeps its data in.
func (p *Postgres) initialize(ctx context.Context) error {
	attr, err := unprivileged()
	if err != nil {
		return err
	}

	password := filepath.Join(p.dir, "password")

	if err := errors.Join(os.WriteFile(password, []byte(p.Password), 0o600), giveAway(p.dir), giveAway(password)); err != nil {
		return fmt.Errorf("servertest: %w", err)
	}

	as := &exec.Cmd{SysProcAttr: attr, Dir: p.dir, Env: []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}}

	output, err := run(ctx, as, filepath.Join(p.programs, "bin", "initdb"),
		"-D", p.data(), "-U", p.User, "--pwfile="+password, "-A", "scram-sha-256", "-E", "UTF8", "--no-locale", "--no-sync")
	if err != nil {
		return fmt.Errorf("servertest: %w\n%s", err, tail(output))
	}

	return nil
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

// serve starts the process and waits until it can be used. The processes below one that was killed end by themselves, a little
// later, and until then no other can have its data.
func (p *Postgres) serve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()

	for {
		err := p.serveOnce(ctx)
		if err == nil || !strings.Contains(err.Error(), "shared memory block") {
			return err
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * readyPause):
		}
	}
}

func (p *Postgres) serveOnce(ctx context.Context) error {
	attr, err := unprivileged()
	if err != nil {
		return err
	}

	p.process, err = launch("postgres", p.dir, attr, filepath.Join(p.programs, "bin", "postgres"),
		"-D", p.data(), "-p", strconv.Itoa(p.port),
		"-c", "listen_addresses="+loopback, "-c", "unix_socket_directories=", "-c", "fsync=off")
	if err != nil {
		return err
	}

	if err := p.process.ready(ctx, p.ready); err != nil {
		p.process.kill()

		return err
	}

	return nil
}

// ready looks into the file in which the server says how far it is: the first line is its process, the eighth its state.
func (p *Postgres) ready(context.Context) error {
	content, err := os.ReadFile(filepath.Join(p.data(), "postmaster.pid"))
	if err != nil {
		return err
	}

	lines := strings.Split(string(content), "\n")
	if len(lines) < 8 || lines[0] != strconv.Itoa(p.process.raw.Pid) || strings.TrimSpace(lines[7]) != "ready" {
		return errors.New("it says that it is not ready")
	}

	return nil
}
