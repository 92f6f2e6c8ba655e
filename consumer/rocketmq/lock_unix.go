//go:build unix

package rocketmq

import (
	"os"
	"syscall"
)

// lockWhole keeps other members from what a file stands for until it is closed. It fails when one of them has it.
func lockWhole(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:wrapcheck // the caller says what it is
}
