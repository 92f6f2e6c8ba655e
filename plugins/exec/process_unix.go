//go:build unix

package exec

import (
	"errors"
	"os"
	"syscall"
)

// ownGroup puts a program at the head of a process group, so that it can be killed with all that it starts, and so that
// Ctrl-C at a terminal reaches the job only.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(leader *os.Process) {
	_ = syscall.Kill(-leader.Pid, syscall.SIGKILL) // nobody there is fine
	_ = leader.Kill()
}

func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
