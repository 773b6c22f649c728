//go:build unix && !linux

package process

import "syscall"

// Other kernels cannot end a child with its parent: after `kill -9` of soak they stay.
func attributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
