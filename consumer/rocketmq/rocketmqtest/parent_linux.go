package rocketmqtest

import "syscall"

// endWithParent has a process killed when the one that started it ends, however that happens.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
