//go:build !unix

package exec

import (
	"os"
	"syscall"
)

// ownGroup does nothing where there are no process groups: what a program has started outlives it there.
func ownGroup() *syscall.SysProcAttr { return nil }

func killGroup(leader *os.Process) { _ = leader.Kill() }

func isBrokenPipe(error) bool { return true }
