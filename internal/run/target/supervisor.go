package target

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/process"
)

const (
	restartPause = 500 * time.Millisecond
	maxCrashes   = 10
)

// A supervisor runs one process of the target. It records each crash, and restarts the process after each of the
// first maxCrashes crashes.
type supervisor struct {
	name         string
	startProcess func(restart bool) (*process.Process, error)

	mu       sync.Mutex
	process  *process.Process
	crashes  []Crash
	stopping chan struct{}
	watchers sync.WaitGroup
}

func newSupervisor(name string, startProcess func(restart bool) (*process.Process, error)) *supervisor {
	return &supervisor{name: name, startProcess: startProcess, stopping: make(chan struct{})}
}

// start starts the process and watches it for a crash. restart reports whether the process has crashed before.
func (s *supervisor) start(restart bool) error {
	p, err := s.startProcess(restart)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = p
	s.watchers.Go(func() { s.watch(p) })
	return nil
}

func (s *supervisor) watch(p *process.Process) {
	select {
	case <-s.stopping:
		return
	case <-p.Done():
	}
	crashedAt := time.Now()
	if p.IsGroupRunning() {
		p.StopGroup(context.Background(), syscall.SIGKILL, 0) // nginx workers would keep the port and outlive the run
	}
	select {
	case <-s.stopping:
		return
	default:
	}
	text := fmt.Sprintf("%s died at %s UTC (%s)", s.name, crashedAt.UTC().Format(time.TimeOnly), exitText(p.Err()))
	if crashes := len(s.crashList()) + 1; crashes > maxCrashes {
		s.recordCrash(crashedAt, fmt.Sprintf("%s and was not restarted after %d crashes", text, crashes))
		return
	}
	crash := s.recordCrash(crashedAt, text)
	select {
	case <-s.stopping:
		return
	case <-time.After(restartPause):
	}
	outcome := " and was restarted"
	if err := s.start(true); err != nil {
		outcome = fmt.Sprintf(" and could not be restarted: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crashes[crash].Text += outcome
}

func exitText(err error) string {
	if err == nil {
		return "exit code 0"
	}
	return err.Error()
}

// A Crash reports that a process of the target ended although soak did not stop it, and whether soak restarted it.
type Crash struct {
	At   time.Time
	Text string
}

func (s *supervisor) recordCrash(at time.Time, text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crashes = append(s.crashes, Crash{at, text})
	return len(s.crashes) - 1
}

func (s *supervisor) crashList() []Crash {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.crashes)
}

func (s *supervisor) current() *process.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// stop ends the process without a restart and waits for it. It kills the process after grace, or when ctx ends.
func (s *supervisor) stop(ctx context.Context, grace time.Duration) {
	close(s.stopping)
	s.watchers.Wait() // no further restart is possible
	if p := s.current(); p != nil {
		p.Stop(ctx, syscall.SIGTERM, grace)
	}
}
