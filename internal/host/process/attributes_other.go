//go:build unix && !linux

package process

import "syscall"

// attributes ignores the signal, because other kernels cannot end a child with its parent. Children survive `kill -9` of soak.
func attributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
