//go:build unix

package safefile

import "syscall"

// NoFollow makes os.OpenFile refuse a symbolic link.
const NoFollow = syscall.O_NOFOLLOW

const nonBlock = syscall.O_NONBLOCK
