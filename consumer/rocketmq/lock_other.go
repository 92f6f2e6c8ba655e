//go:build !unix

package rocketmq

import "os"

// lockWhole does nothing where files cannot be locked like that.
func lockWhole(*os.File) error { return nil }
