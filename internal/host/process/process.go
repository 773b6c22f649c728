// Package process runs the processes of a soak so that none outlives it, unless Orphan is 0: each is in a process
// group of its own (a Ctrl-C at the terminal reaches only soak, which ends them in order),
// and the kernel ends it if soak itself is killed.
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

// Spec is what to start.
type Spec struct {
	Name   string // for messages
	Path   string
	Args   []string
	Env    []string // whole, not added to ours
	Log    string   // file that takes stdout and stderr, appended to
	Output *os.File // takes them in the place of Log
	Extra  []*os.File
	Cores  Cores          // that it may run on
	Orphan syscall.Signal // what the kernel sends it when soak dies; 0: nothing
}

// A Process is a started process. Wait for Done before reading Err.
type Process struct {
	Name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts the process.
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
	cmd.SysProcAttr = attributes(s.Orphan)
	if err := startOn(cmd, s.Cores); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	p := &Process{Name: s.Name, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Adopt returns a running process that another soak started. The caller calls ended when it has ended. How it ended is unknown, so its
// exit code is 0.
func Adopt(name string, pid int) (p *Process, ended func(), err error) {
	found, err := os.FindProcess(pid)
	if err != nil {
		return nil, nil, fmt.Errorf("adopt %s: %w", name, err)
	}
	p = &Process{Name: name, cmd: &exec.Cmd{Process: found}, done: make(chan struct{})}
	return p, func() { close(p.done) }, nil
}

// PID is its process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how it ended, nil for exit code 0.
func (p *Process) Err() error { return p.err }

// ExitCode is its exit code, -1 when a signal ended it.
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

// Signal sends a signal; to one that has ended it does nothing.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// HasOrphans reports whether children of the process still run after its end.
func (p *Process) HasOrphans() bool { return p.signalGroup(0) == nil }

// StopGroup is Stop for the process and all that it started: each is asked. It may be asked of a process that has
// ended only where that left something behind: another group may have its number else.
func (p *Process) StopGroup(ctx context.Context, s syscall.Signal, grace time.Duration) {
	_ = p.signalGroup(s)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for p.HasOrphans() {
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

// Stop asks the process to end with s, kills it after grace or when ctx ends, and waits for it.
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
	_ = p.signalGroup(syscall.SIGKILL) // the group: what it started too
	<-p.done
}
