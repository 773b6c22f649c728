package process

import "syscall"

// attributes puts a process into its own group, and has the kernel send it a signal when the thread that starts it
// ends, at the latest with this process; 0: none.
func attributes(orphan syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphan}
}
