package target

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/process"
)

const (
	restartPause = 500 * time.Millisecond
	maxCrashes   = 10 // a process that crashes this often will not stay up
)

// A service is one process of the target. One that dies is started again, as any service
// manager would: a soak has to survive that, and to tell of it.
type service struct {
	name  string
	begin func(again bool) (*process.Process, error)

	mu       sync.Mutex
	process  *process.Process
	crashes  []string
	stopping chan struct{}
	watched  sync.WaitGroup
}

func newService(name string, begin func(again bool) (*process.Process, error)) *service {
	return &service{name: name, begin: begin, stopping: make(chan struct{})}
}

func (s *service) start(again bool) error {
	p, err := s.begin(again)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = p
	s.watched.Go(func() { s.watch(p) })
	return nil
}

func (s *service) watch(p *process.Process) {
	select {
	case <-s.stopping:
		return
	case <-p.Done():
	}
	select {
	case <-s.stopping:
		return
	default:
	}
	s.note(fmt.Sprintf("%s died at %s UTC (%s) and was restarted", s.name, time.Now().UTC().Format(time.TimeOnly), ending(p.Err())))
	if len(s.crashed()) > maxCrashes {
		return
	}
	select {
	case <-s.stopping:
		return
	case <-time.After(restartPause):
	}
	if err := s.start(true); err != nil {
		s.note(err.Error())
	}
}

func ending(err error) string {
	if err == nil {
		return "exit code 0"
	}
	return err.Error()
}

func (s *service) note(crash string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crashes = append(s.crashes, crash)
}

func (s *service) crashed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.crashes...)
}

// present is the process as it is now, nil before the first start.
func (s *service) present() *process.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// stop ends the process for good and waits for it; when ctx ends it kills. A stopped or never
// started service stays as it is.
func (s *service) stop(ctx context.Context, grace time.Duration) {
	close(s.stopping)
	s.watched.Wait() // no restart can come any more
	if p := s.present(); p != nil {
		p.Stop(ctx, syscall.SIGTERM, grace)
	}
}
