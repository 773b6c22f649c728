package sse

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mstoykov/k6-taskqueue-lib/taskqueue"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// A session holds the task queue and the samples of the streams of one iteration. It lasts from the first stream to the
// end of the last one. A later stream of the iteration starts a new session.
type session struct {
	*sseclient.Group
	m     *Module
	state *lib.State
	tasks *taskqueue.TaskQueue

	mu         sync.Mutex // guards the fields up to counters
	references int        // number of calls of acquire without a release
	hasEnded   bool
	pending    metrics.Samples // samples that are not yet passed to k6
	counters   map[*metrics.TagSet][]*eventCounter

	flushing    sync.Mutex  // prevents concurrent calls of flush and finish
	isScheduled atomic.Bool // a flush is scheduled
	timer       *time.Timer // for the next flush; only the goroutine that sets isScheduled uses it
}

// currentSession returns the session of the current iteration. It runs on the event loop.
func (m *Module) currentSession() *session {
	if m.session == nil {
		sseclient.ReleaseStartMemory()
		state := m.vu.State()
		m.session = &session{
			Group: m.clientFor(state).Group(m.vu.Context()), m: m, state: state,
			tasks: taskqueue.New(m.vu.RegisterCallback), counters: make(map[*metrics.TagSet][]*eventCounter),
		}
	}
	return m.session
}

// acquire keeps the session alive until release is called. It must be called on the event loop.
func (s *session) acquire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.references++
}

// release undoes an acquire. The last release ends the session after the queued tasks, unless one of them calls
// acquire. Any goroutine may call release.
func (s *session) release() {
	s.mu.Lock()
	s.references--
	ended := s.references == 0
	s.mu.Unlock()
	if ended {
		s.queue(func() error { // earlier tasks may open another stream
			s.finish()
			return nil
		})
	}
}

// queue queues a task for the event loop. An error of the task interrupts all streams and ends the iteration. Any
// goroutine may call queue before release.
func (s *session) queue(task func() error) {
	s.tasks.Queue(func() error {
		err := task()
		if err != nil { // k6 may drop later tasks
			s.Interrupt()
			s.finish()
		}
		return err
	})
}

// finish ends the session if every acquire has been released. It pushes the last samples, closes idle connections
// and allows the iteration to end. It runs on the event loop, where k6 accepts samples even after the end of the
// context.
func (s *session) finish() {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.mu.Lock()
	ends := s.references == 0 && !s.hasEnded
	s.hasEnded = s.hasEnded || ends
	s.mu.Unlock()
	if !ends {
		return
	}
	if s.m.session == s {
		s.m.session = nil
	}
	s.Close()
	if last := s.collect(); len(last) > 0 {
		s.state.Samples <- last
	}
	s.m.client.CloseIdle()
	s.tasks.Close()
}
