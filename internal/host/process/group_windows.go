package process

import (
	"errors"
	"syscall"
)

// Windows has no such signal. What Start is for, runners and the target, is not started there at all (run.newDriver).
func attributes(syscall.Signal) *syscall.SysProcAttr { return nil }

// Guard guards nothing.
func (*Process) Guard() (release func(), err error) { return func() {}, nil }

// signalGroup ends the process itself: there are no groups, and no other signal.
func (p *Process) signalGroup(s syscall.Signal) error {
	if s != syscall.SIGKILL {
		return errors.ErrUnsupported
	}
	return p.cmd.Process.Kill()
}
