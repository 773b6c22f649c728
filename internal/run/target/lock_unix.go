//go:build unix

package target

import (
	"os"
	"syscall"
)

// lock waits for an exclusive lock of a file.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }

// tryLock locks a file, and returns an error if another process has the lock.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
