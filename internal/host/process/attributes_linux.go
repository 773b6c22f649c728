package process

import "syscall"

// attributes returns the attributes of a process in its own group. The kernel sends the signal orphan to the process
// when the thread that started the process ends, at the latest when soak ends. If orphan is 0, it sends none.
func attributes(orphan syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphan}
}
