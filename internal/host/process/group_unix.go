//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// signalGroup sends a signal to the process and all that it started; 0 asks whether there is still any of them.
func (p *Process) signalGroup(s syscall.Signal) error { return syscall.Kill(-p.PID(), s) }

// guard waits for its standard input to end, which it does when soak is no more.
const guard = `read -r _; kill -s KILL -- "-$1"`

// Guard has all that the process started end with soak, even with `kill -9`: what the kernel then sends to a child its own
// children are not told. It ends with release, which has to be called once nothing of the group is left: its number may be
// given to another.
func (p *Process) Guard() (release func(), err error) {
	alive, us, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guard %s: %w", p.Name, err)
	}
	defer alive.Close()
	cmd := exec.Command("/bin/sh", "-c", guard, "sh", strconv.Itoa(p.PID())) // #nosec G204 -- a constant script with a process id
	cmd.Stdin = alive
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what ends the group or the terminal does not end the guard
	if err := cmd.Start(); err != nil {
		_ = us.Close()
		return nil, fmt.Errorf("guard %s: %w", p.Name, err)
	}
	return func() {
		_ = cmd.Process.Kill() // before its input ends
		_ = cmd.Wait()
		_ = us.Close()
	}, nil
}
