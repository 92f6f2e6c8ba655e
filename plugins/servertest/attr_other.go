//go:build !linux

package servertest

import (
	"errors"
	"os"
	"syscall"
)

// endWithParent does nothing here: a test that is killed leaves its servers running.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// unprivileged is endWithParent for a server that refuses to be root.
func unprivileged() (*syscall.SysProcAttr, error) {
	if os.Geteuid() == 0 {
		return nil, errors.New("servertest: PostgreSQL refuses to be root; run the tests as another user")
	}

	return endWithParent(), nil
}

// publicCache returns the cache directory for programs that unprivileged servers run.
func publicCache() (string, error) { return os.UserCacheDir() }

// giveAway does nothing: here the server's user is the own one.
func giveAway(string) error { return nil }

// children returns the processes that a process has started, where the operating system tells.
func children(*os.Process) []*os.Process { return nil }
