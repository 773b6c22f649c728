//go:build unix

package safefile

import "syscall"

// NoFollow makes os.OpenFile refuse a symbolic link.
const NoFollow = syscall.O_NOFOLLOW

// nonBlock makes os.OpenFile return without waiting for the writer of a pipe.
const nonBlock = syscall.O_NONBLOCK
