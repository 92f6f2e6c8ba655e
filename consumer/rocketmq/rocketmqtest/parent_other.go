//go:build !linux

package rocketmqtest

import "syscall"

// endWithParent does nothing here: a test that is killed leaves its servers running.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
