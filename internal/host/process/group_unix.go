//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// signalGroup sends a signal to the process group. With signal 0 it returns an error if the group has no process.
func (p *Process) signalGroup(s syscall.Signal) error { return syscall.Kill(-p.PID(), s) }

// guard is a script that kills a process group when the script's standard input is closed, because soak has ended.
const guard = `read -r _; kill -s KILL -- "-$1"`

// Guard starts a script that kills the process group when soak ends, even if soak is killed by `kill -9`. The kernel's
// OrphanSignal reaches only direct children. The caller must call release when the group has ended, because another
// group may get the same id.
func (p *Process) Guard() (release func(), err error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guard %s: %w", p.Name, err)
	}
	defer reader.Close()
	cmd := exec.Command("/bin/sh", "-c", guard, "sh", strconv.Itoa(p.PID())) // #nosec G204 -- a constant script with a process id
	cmd.Stdin = reader
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals to the group or from the terminal do not reach the guard
	if err := cmd.Start(); err != nil {
		_ = writer.Close()
		return nil, fmt.Errorf("guard %s: %w", p.Name, err)
	}
	return func() {
		_ = cmd.Process.Kill() // before the pipe is closed, which would make the guard kill the group
		_ = cmd.Wait()
		_ = writer.Close()
	}, nil
}
