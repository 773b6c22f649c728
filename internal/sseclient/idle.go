package sseclient

import (
	"sync"
	"sync/atomic"
	"time"
)

// An idleMark is the state that a reader with an idle timeout shares with the sweep. The reader only records the
// arrival time of bytes. A read deadline per stream would cost a timer, a wake-up and a failed read per timeout. With
// two messages per timeout, that would be a quarter of the CPU time of a stream.
type idleMark struct {
	transport     transport
	timeout       atomic.Int64 // maximum silence of the server, a time.Duration; 0: no limit
	last          atomic.Int64 // arrival time of the last bytes, since processStart
	isInterrupted atomic.Bool  // the sweep has interrupted a read, and the reader has not yet handled the interruption
	index         int32        // position in the marks of the sweep, from 1; 0: not watched
}

// resume ends an interruption. The reader calls it.
func (m *idleMark) resume() {
	m.transport.resume(time.Time{})
	m.isInterrupted.Store(false)
}

func (m *idleMark) touch(at time.Time) { m.last.Store(int64(at.Sub(processStart))) }

func (m *idleMark) isSilent(now time.Duration) bool {
	limit := m.limit()
	return limit > 0 && now-time.Duration(m.last.Load()) >= limit
}

func (m *idleMark) limit() time.Duration { return time.Duration(m.timeout.Load()) }

// nextCheck returns the time at which the timeout would expire, but not earlier than grain(limit) from now, so that one
// sweep checks many streams.
func (m *idleMark) nextCheck(now time.Duration) time.Duration {
	limit := m.limit()
	if limit == 0 {
		return now + unlimitedCheckInterval
	}
	return max(time.Duration(m.last.Load())+limit, now+grain(limit))
}

// grain returns the maximum delay between a timeout and its detection by a sweep.
func grain(limit time.Duration) time.Duration { return max(limit/grainDivisor, minGrain) }

// extend gives the server more time: the delay of a sweep, up to half of the timeout. The process did not run during
// that delay, and a server on the same machine may not have run either.
func (m *idleMark) extend(now, delay time.Duration) {
	limit := m.limit()
	if delay <= grain(limit) {
		return
	}
	last := m.last.Load()
	if earliest := int64(now - limit + min(delay, limit/2)); last < earliest {
		m.last.CompareAndSwap(last, earliest) // fails if bytes arrive at the same time
	}
}

const (
	grainDivisor = 16
	minGrain     = 10 * time.Millisecond
	// unlimitedCheckInterval is the interval of checks after a timeout was removed.
	unlimitedCheckInterval = time.Minute
)

// An idleSweep checks the streams with an idle timeout. Its timer runs only while there are such streams. If all
// streams receive bytes every second, each is checked about once per timeout.
type idleSweep struct {
	mu    sync.Mutex
	marks []*idleMark
	timer *time.Timer   // nil while there are no marks
	next  time.Duration // time of the next sweep, since processStart
}

var processSweep idleSweep

// watch adds a stream. at is the arrival time of its last bytes.
func (w *idleSweep) watch(m *idleMark, at time.Time) {
	m.touch(at)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marks = append(w.marks, m)
	m.index = int32(len(w.marks)) // #nosec G115 -- streams of one process
	now := time.Since(processStart)
	switch due := m.nextCheck(now); {
	case w.timer == nil:
		w.next = due
		w.timer = time.AfterFunc(due-now, w.sweep)
	case due < w.next:
		w.next = due
		w.timer.Reset(due - now)
	}
}

// advance makes the next sweep early enough for a shortened timeout.
func (w *idleSweep) advance(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Since(processStart)
	if due := now + grain(limit); w.timer != nil && due < w.next {
		w.next = due
		w.timer.Reset(due - now)
	}
}

// forget removes a stream, if it was added. The sweep then no longer uses the connection.
func (w *idleSweep) forget(m *idleMark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.index == 0 {
		return
	}
	last := len(w.marks) - 1
	mark := w.marks[last]
	w.marks[m.index-1], mark.index = mark, m.index
	w.marks[last], m.index = nil, 0
	w.marks = w.marks[:last]
	if last == 0 {
		w.timer.Stop()
		w.timer, w.marks = nil, nil
	}
}

// sweep interrupts the reads of all silent streams, and then schedules the next sweep. It does not interrupt a read
// again before the reader has handled the interruption.
func (w *idleSweep) sweep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Since(processStart)
	delay := now - w.next
	next := time.Duration(-1)
	for _, m := range w.marks {
		m.extend(now, delay)
		if m.isSilent(now) && m.isInterrupted.CompareAndSwap(false, true) {
			m.transport.interrupt()
		}
		if due := m.nextCheck(now); next < 0 || due < next {
			next = due
		}
	}
	if w.timer != nil && next >= 0 {
		w.next = next
		w.timer.Reset(next - now)
	}
}
