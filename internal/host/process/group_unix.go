//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// signalGroup sends a signal to the process group. Signal 0 returns an error if the group has no process.
func (p *Process) signalGroup(s syscall.Signal) error { return syscall.Kill(-p.PID(), s) }

// guard is a script that kills a process group when the standard input of the script ends, because soak has ended.
const guard = `read -r _; kill -s KILL -- "-$1"`

// Guard kills the process group when soak ends, even by `kill -9`, because the kernel signals only direct children. The
// caller must call release when the group has ended, because another group may get its number.
func (p *Process) Guard() (release func(), err error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guard %s: %w", p.Name, err)
	}
	defer reader.Close()
	cmd := exec.Command("/bin/sh", "-c", guard, "sh", strconv.Itoa(p.PID())) // #nosec G204 -- a constant script with a process id
	cmd.Stdin = reader
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals to the group or the terminal do not reach the guard
	if err := cmd.Start(); err != nil {
		_ = writer.Close()
		return nil, fmt.Errorf("guard %s: %w", p.Name, err)
	}
	return func() {
		_ = cmd.Process.Kill() // first, because the end of its input would make it kill the group
		_ = cmd.Wait()
		_ = writer.Close()
	}, nil
}
