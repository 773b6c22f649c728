//go:build unix

package process

import "syscall"

// signalGroup sends a signal to the process and all that it started; 0 asks whether there is still any of them.
func (p *Process) signalGroup(s syscall.Signal) error { return syscall.Kill(-p.PID(), s) }
