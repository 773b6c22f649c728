// Package process runs the processes of a soak. Each is in its own process group, so that a Ctrl-C at the terminal
// reaches only soak, which ends the processes in order. If soak is killed, the Linux kernel sends each process its
// Spec.OrphanSignal.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A Spec describes a process to start.
type Spec struct {
	Name         string // for errors
	Path         string
	Args         []string
	Env          []string       // complete environment; nil: the environment of soak
	Log          string         // file to which stdout and stderr are appended
	Output       *os.File       // replaces Log if not nil
	Extra        []*os.File     // open files that the process inherits, from descriptor 3 on
	CPUs         CPUList        // CPUs of the process; empty: all
	OrphanSignal syscall.Signal // signal that the Linux kernel sends when soak ends; 0: none
}

// A Process is a started process. Wait for Done before calling Err, End or ExitCode.
type Process struct {
	Name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
	end  time.Time
}

// Start starts the process that s describes, and waits for its end in the background.
func Start(s Spec) (*Process, error) {
	log := s.Output
	if log == nil {
		var err error
		if log, err = os.OpenFile(s.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
			return nil, fmt.Errorf("start %s: %w", s.Name, err)
		}
		defer log.Close()
	}
	cmd := exec.Command(s.Path, s.Args...) // #nosec G204 -- starts the runs' programs, without a shell
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = s.Env, log, log, s.Extra
	cmd.SysProcAttr = attributes(s.OrphanSignal)
	if err := startOn(cmd, s.CPUs); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	p := &Process{Name: s.Name, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err, p.end = cmd.Wait(), time.Now()
		close(p.done)
	}()
	return p, nil
}

// Adopt returns a running process that another soak process started. The caller must call finish when the process has
// ended. ExitCode returns 0 for an adopted process, because its exit code is unknown.
func Adopt(name string, pid int) (p *Process, finish func(), err error) {
	process, err := os.FindProcess(pid)
	if err != nil {
		return nil, nil, fmt.Errorf("adopt %s: %w", name, err)
	}
	p = &Process{Name: name, cmd: &exec.Cmd{Process: process}, done: make(chan struct{})}
	return p, func() { close(p.done) }, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns nil for exit code 0 and for an adopted process. Otherwise it returns the error of exec.Cmd.Wait, usually
// an *exec.ExitError.
func (p *Process) Err() error { return p.err }

// End returns the time at which the process ended, or the zero time for an adopted process.
func (p *Process) End() time.Time { return p.end }

// ExitCode returns the exit code, or -1 if a signal ended the process or exec.Cmd.Wait failed.
func (p *Process) ExitCode() int {
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		return exit.ExitCode()
	}
	if p.err != nil {
		return -1
	}
	return 0
}

// Signal sends a signal to the process. It does nothing if the process has ended.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// IsGroupRunning reports whether a process of the group is running. If p has ended, the running process is a descendant
// of p.
func (p *Process) IsGroupRunning() bool { return p.signalGroup(0) == nil }

// StopGroup sends s to the process group, and kills the group if it still runs after grace or when ctx ends. It also
// waits for the process. After the process has ended, call StopGroup only if IsGroupRunning returns true, because
// another group may have the same id.
func (p *Process) StopGroup(ctx context.Context, s syscall.Signal, grace time.Duration) {
	_ = p.signalGroup(s)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for p.IsGroupRunning() {
		select {
		case <-time.After(20 * time.Millisecond):
			continue
		case <-timer.C:
		case <-ctx.Done():
		}
		_ = p.signalGroup(syscall.SIGKILL)
		break
	}
	<-p.done
}

// Stop sends s to the process, and kills its group if the process still runs after grace or when ctx ends. It returns
// when the process has ended.
func (p *Process) Stop(ctx context.Context, s syscall.Signal, grace time.Duration) {
	p.Signal(s)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	_ = p.signalGroup(syscall.SIGKILL) // also ends children of the process
	<-p.done
}

// Find returns the path of a program in PATH or in /usr/sbin, which Debian omits from the PATH of ordinary users.
func Find(name string) (path string, err error) {
	if path, err = exec.LookPath(name); err != nil {
		if path, sbinErr := exec.LookPath("/usr/sbin/" + name); sbinErr == nil {
			return path, nil
		}
	}
	return path, err
}
