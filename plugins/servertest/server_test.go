package servertest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAServerIsReadyStopsCrashesAndComesBack(t *testing.T) {
	t.Parallel()

	t.Run("postgres", func(t *testing.T) {
		t.Parallel()

		p := StartPostgres(t)
		comesBack(t, p.Addr, p, func() error { return p.ready(t.Context()) })

		if !strings.HasPrefix(p.DSN(), "postgres://miller:a%20s3cret%2Fpass%3Aword@"+p.Addr+"/postgres?") {
			t.Errorf("the DSN is %s", p.DSN())
		}
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()

		r := StartRedis(t)
		comesBack(t, r.Addr, r, func() error { return r.ready(t.Context()) })

		if r.URL() != "redis://:a-s3cret-password@"+r.Addr+"/0" {
			t.Errorf("the URL is %s", r.URL())
		}
	})
}

type server interface {
	Start(t testing.TB)
	Stop(t testing.TB)
	Kill(t testing.TB)
}

func comesBack(t *testing.T, addr string, s server, ready func() error) {
	t.Helper()

	for _, end := range []func(testing.TB){s.Stop, s.Kill} {
		if err := ready(); err != nil || !listens(t, addr) {
			t.Fatalf("after its start it is not ready: %v", err)
		}

		end(t)

		if listens(t, addr) {
			t.Error("after its end it still listens")
		}

		s.Start(t)
	}
}

func listens(t *testing.T, addr string) bool {
	t.Helper()

	var dial net.Dialer

	conn, err := dial.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return false
	}

	_ = conn.Close()

	return true
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	none := t.TempDir()
	t.Setenv("PATH", none)

	_, err := redisArtifact().directory(t.Context(), none)
	if err == nil || !strings.Contains(err.Error(), "mvn is not in the PATH") || !strings.Contains(err.Error(), "apt-get install maven") {
		t.Errorf("without Maven: %v", err)
	}

	jar := filepath.Join(none, "empty.jar")
	empty := "PK\x05\x06" + strings.Repeat("\x00", 18)

	if err := os.WriteFile(jar, []byte(empty), 0o600); err != nil {
		t.Fatal(err)
	}

	err = redisArtifact().unpack(t.Context(), jar, none)
	if err == nil || !strings.Contains(err.Error(), "no such server for this operating system") {
		t.Errorf("without a server for this machine: %v", err)
	}

	left, err := filepath.Glob(filepath.Join(none, "millrace", "servers", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("a fetch that failed has left %v, %v", left, err)
	}
}

func TestAServerThatEndsTellsWhy(t *testing.T) {
	t.Parallel()

	shell, err := launch("shell", t.TempDir(), endWithParent(), "/bin/sh", "-c", "echo no good; exit 3")
	if err != nil {
		t.Fatal(err)
	}

	err = shell.ready(t.Context(), func(context.Context) error { return context.Canceled })
	if err == nil || !strings.Contains(err.Error(), "no good") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("the error is %v", err)
	}
}
