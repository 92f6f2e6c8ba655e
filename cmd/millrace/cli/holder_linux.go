package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// holder says which process has a broker's directory open; empty when that cannot be found out. It must not be called while
// this process has it open: closing the file would give the lock up.
func holder(dir string) string {
	file, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_RDWR, 0) //nolint:gosec // the path comes from the operator
	if err != nil {
		return ""
	}

	defer func() { _ = file.Close() }() // nothing was written

	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &lock); err != nil || lock.Type == syscall.F_UNLCK || lock.Pid <= 0 {
		return ""
	}

	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", lock.Pid))

	return strings.TrimSpace(fmt.Sprintf("process %d %s", lock.Pid, strings.TrimSpace(string(name))))
}
