package process

import "syscall"

func attributes(orphan syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphan}
}
