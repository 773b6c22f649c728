//go:build unix

package target

import (
	"os"
	"syscall"
)

// noFollow refuses a symbolic link, which others may put into a folder that all can write to.
const noFollow = syscall.O_NOFOLLOW

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }

// tryLock fails where another process has the lock.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
