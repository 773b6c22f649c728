package process

import (
	"errors"
	"syscall"
)

// attributes returns nil, because Windows has neither process groups nor a signal that is sent when the parent ends. No
// runner or target runs on Windows (run.newDriver).
func attributes(syscall.Signal) *syscall.SysProcAttr { return nil }

// Guard does nothing on Windows.
func (*Process) Guard() (release func(), err error) { return func() {}, nil }

// signalGroup kills the process. Windows has no groups and no other signal.
func (p *Process) signalGroup(s syscall.Signal) error {
	if s != syscall.SIGKILL {
		return errors.ErrUnsupported
	}
	return p.cmd.Process.Kill()
}
