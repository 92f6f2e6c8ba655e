package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// nobody is the user without rights that every Linux has.
const nobody = 65534

// endWithParent has a process killed when the one that started it ends, however that happens.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// children stops a process and returns those that it has started.
func children(parent *os.Process) []*os.Process {
	if parent.Signal(syscall.SIGSTOP) != nil {
		return nil
	}

	list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent.Pid))

	var all []*os.Process

	for _, file := range list {
		text, _ := os.ReadFile(file) //nolint:gosec // the kernel's
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				if child, err := os.FindProcess(pid); err == nil {
					all = append(all, child)
				}
			}
		}
	}

	return all
}

// unprivileged is endWithParent for a server that refuses to be root: root starts it as nobody.
func unprivileged() (*syscall.SysProcAttr, error) {
	attr := endWithParent()

	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}

	return attr, nil
}

// publicCache returns the cache directory for programs that unprivileged servers run, into root's nobody else may look.
func publicCache() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache", nil
	}

	return os.UserCacheDir()
}

// giveAway makes a directory that of the user whom unprivileged servers run as.
func giveAway(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}

	return os.Chown(dir, nobody, nobody)
}
