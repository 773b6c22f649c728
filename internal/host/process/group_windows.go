package process

import (
	"errors"
	"syscall"
)

// attributes returns nil, because Windows has neither Unix process groups nor a signal that is sent when the parent ends.
// On Windows, soak starts no runner and no target (run.newDriver).
func attributes(syscall.Signal) *syscall.SysProcAttr { return nil }

// Guard does nothing on Windows.
func (*Process) Guard() (release func(), err error) { return func() {}, nil }

// signalGroup kills only the process itself, because Windows has no Unix process groups. Other signals are unsupported.
func (p *Process) signalGroup(s syscall.Signal) error {
	if s != syscall.SIGKILL {
		return errors.ErrUnsupported
	}
	return p.cmd.Process.Kill()
}
