package sseclient

import (
	"sync"
	"sync/atomic"
	"time"
)

// idleMark is where the reader of a stream that has an idleTimeout and the sweep that
// watches it meet. The reader only writes down when bytes came: a read deadline for each
// stream costs a timer, a wake-up and a read in vain every idleTimeout, which was a
// quarter of all CPU of a stream that gets two noops in that time.
type idleMark struct {
	transport   transport
	timeout     atomic.Int64 // how long the server may be silent, a time.Duration; 0: for ever
	last        atomic.Int64 // when the last bytes arrived, since processStart
	interrupted atomic.Bool  // its read was interrupted and the reader has not answered yet
	place       int32        // among the marks of the sweep, from 1 on; 0: it is not watched
}

// resume lets the reader read on after an interruption. For the reader.
func (m *idleMark) resume() {
	m.transport.resume(time.Time{})
	m.interrupted.Store(false)
}

// touch notes that bytes arrived.
func (m *idleMark) touch(at time.Time) { m.last.Store(int64(at.Sub(processStart))) }

// silent reports whether the timeout has passed.
func (m *idleMark) silent(now time.Duration) bool {
	limit := m.limit()
	return limit > 0 && now-time.Duration(m.last.Load()) >= limit
}

// limit returns the idle timeout, 0 for none.
func (m *idleMark) limit() time.Duration { return time.Duration(m.timeout.Load()) }

// due is when the mark is to be looked at again: when it would be silent, but not before
// its grain is over, so that many streams are looked at together.
func (m *idleMark) due(now time.Duration) time.Duration {
	limit := m.limit()
	if limit == 0 {
		return now + unwatchedLook
	}
	return max(time.Duration(m.last.Load())+limit, now+grain(limit))
}

// grain is by how much a silence may be noticed late.
func grain(limit time.Duration) time.Duration { return max(limit/idleGrain, minIdleGrain) }

// forgive gives the server as long to be heard as the sweep came late, up to half of its
// timeout. This process did not run, and perhaps neither did its machine, with the server
// on it: of that time nothing is known.
func (m *idleMark) forgive(now, late time.Duration) {
	limit := m.limit()
	if late <= grain(limit) {
		return
	}
	last := m.last.Load()
	if least := int64(now - limit + min(late, limit/2)); last < least {
		m.last.CompareAndSwap(last, least) // or its reader was quicker
	}
}

const (
	// idleGrain is which part of a timeout its grain is.
	idleGrain    = 16
	minIdleGrain = 10 * time.Millisecond
	// unwatchedLook is when a stream is looked at again whose timeout was taken back.
	unwatchedLook = time.Minute
)

// idleSweep watches the streams of the process that have an idleTimeout. It is a timer
// that runs only while there are any; where all are read once a second, it looks at them
// once per timeout.
type idleSweep struct {
	mu    sync.Mutex
	marks []*idleMark
	timer *time.Timer   // nil while there are no marks
	next  time.Duration // when it fires, since processStart
}

var processSweep idleSweep

// watch begins to watch a stream that was last heard at some time.
func (w *idleSweep) watch(m *idleMark, at time.Time) {
	m.touch(at)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marks = append(w.marks, m)
	m.place = int32(len(w.marks)) // #nosec G115 -- streams of one process
	now := time.Since(processStart)
	switch due := m.due(now); {
	case w.timer == nil:
		w.next = due
		w.timer = time.AfterFunc(due-now, w.sweep)
	case due < w.next:
		w.next = due
		w.timer.Reset(due - now)
	}
}

// sooner makes the next look come early enough for a timeout that has become shorter.
func (w *idleSweep) sooner(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Since(processStart)
	if due := now + grain(limit); w.timer != nil && due < w.next {
		w.next = due
		w.timer.Reset(due - now)
	}
}

// forget ends that, where it was begun. The reader's connection is not touched after it.
func (w *idleSweep) forget(m *idleMark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.place == 0 {
		return
	}
	last := len(w.marks) - 1
	moved := w.marks[last]
	w.marks[m.place-1], moved.place = moved, m.place
	w.marks[last], m.place = nil, 0
	w.marks = w.marks[:last]
	if last == 0 {
		w.timer.Stop()
		w.timer, w.marks = nil, nil
	}
}

// sweep interrupts the reads of all streams that are silent, each once until its reader
// has answered, and sets the timer anew.
func (w *idleSweep) sweep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Since(processStart)
	late := now - w.next
	next := time.Duration(-1)
	for _, m := range w.marks {
		m.forgive(now, late)
		if m.silent(now) && m.interrupted.CompareAndSwap(false, true) {
			m.transport.interrupt()
		}
		if due := m.due(now); next < 0 || due < next {
			next = due
		}
	}
	if w.timer != nil && next >= 0 {
		w.next = next
		w.timer.Reset(next - now)
	}
}
