//go:build unix && !linux

package process

import "syscall"

// attributes returns the attributes of a process in its own group. It ignores the signal, because macOS cannot send one
// to a child whose parent ends. Children without a Guard therefore survive `kill -9` of soak.
func attributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
