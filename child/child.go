// Package child runs the processes of a soak so that none outlives it: each is in a process
// group of its own (a Ctrl-C at the terminal reaches only soak, which ends them in order),
// and the kernel ends it if soak itself is killed.
package child

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
	Extra  []*os.File
	Orphan syscall.Signal // what the kernel sends it when soak dies
}

// A Child is a started process. Wait for Done before reading Err.
type Child struct {
	Name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts the process.
func Start(s Spec) (*Child, error) {
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = s.Env, log, log, s.Extra
	cmd.SysProcAttr = attributes(s.Orphan)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	c := &Child{Name: s.Name, cmd: cmd, done: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// PID is its process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed when the process has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err is how it ended, nil for exit code 0.
func (c *Child) Err() error { return c.err }

// ExitCode is its exit code, -1 when a signal ended it.
func (c *Child) ExitCode() int {
	var exit *exec.ExitError
	if errors.As(c.err, &exit) {
		return exit.ExitCode()
	}
	if c.err != nil {
		return -1
	}
	return 0
}

// Signal sends a signal; to one that has ended it does nothing.
func (c *Child) Signal(s syscall.Signal) { _ = c.cmd.Process.Signal(s) }

// Stop asks the process to end with s, kills it after grace or when ctx ends, and waits for it.
func (c *Child) Stop(ctx context.Context, s syscall.Signal, grace time.Duration) {
	c.Signal(s)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	_ = syscall.Kill(-c.PID(), syscall.SIGKILL) // the group: what it started too
	<-c.done
}
