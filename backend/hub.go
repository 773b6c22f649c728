package main

import (
	"container/list"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/backend/answer"
	"github.com/sse-soak/sse-soak/backend/fault"
	"github.com/sse-soak/sse-soak/backend/services"
)

// A hub is the scheduler: one goroutine that owns all client ids and streams. Only this goroutine writes to descriptors
// and closes them. There are two exceptions: helpers write a batch while the scheduler waits, and each TLS stream has a
// tlsWriter. The scheduler never blocks on a client. Other goroutines pass functions to the scheduler (post, call).
type hub struct {
	cfg     *Config
	clk     clock
	log     *slog.Logger
	metrics *metrics
	watcher *watcher
	open    atomic.Int64 // number of open streams; only the scheduler changes it

	mu      sync.Mutex // guards inbox and closed
	inbox   []func()
	closed  bool
	waiting atomic.Bool   // inbox is not empty
	wake    chan struct{} // capacity 1
	done    chan struct{} // closed when the scheduler has ended

	// Only the scheduler uses the fields below.
	work                []func() // functions from inbox
	batch               *batch
	devices             map[string]*device
	connectOrder        []*device // ids in the order of their first connects, for the ledger
	connectOrderEvicted int       // number of evicted ids that connectOrder still contains
	evictions           uint64    // number of ids that the ledger has evicted since the start
	slots               []*device // by descriptor: the device whose stream uses it; nil: none
	gen                 uint32    // number of streams opened so far; the value for device.gen
	wheel               *wheel
	tick                int64 // last served tick
	frames              frameCache
	lagging             []*device     // devices with a backlog
	retryAt             time.Duration // elapsed time of the next retry
	resumable           list.List     // ids whose numbering continues without a stream, oldest first
	finished            list.List     // ids without a numbering that are still in the ledger, oldest first
	reservations        int           // number of pending connects
	replay              replayLog
	faults              fault.Set
	newStreams          int           // number since the last release of memory
	lastAttach          time.Duration // elapsed time of the last new stream
	draining            bool
	stopping            bool
}

// newHub starts the scheduler and the watcher.
func newHub(cfg *Config, clk clock, log *slog.Logger, plain *services.Handler) (*hub, error) {
	watch, err := newWatcher()
	if err != nil {
		return nil, err
	}
	h := &hub{
		cfg: cfg, clk: clk, log: log, watcher: watch,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		devices: make(map[string]*device),
		wheel:   newWheel(cfg.NoopInterval, cfg.NoopSchedule),
		batch:   newBatch(),
	}
	h.metrics = newMetrics(cfg, clk, h, plain)
	h.faults.Add(cfg.Faults...)
	go watch.run(func(departures []departure) { h.post(func() { h.closeDeparted(departures) }) })
	go h.run()
	return h, nil
}

func (h *hub) openStreams() int { return int(h.open.Load()) }

// post passes a function to the scheduler and does not wait. It returns false if the scheduler has ended.
func (h *hub) post(f func()) bool {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return false
	}
	h.inbox = append(h.inbox, f)
	h.waiting.Store(true)
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return true
}

// call posts a function, and waits until it has run. It returns false if the scheduler has ended.
func (h *hub) call(f func()) bool {
	done := make(chan struct{})
	if !h.post(func() { f(); close(done) }) {
		return false
	}
	<-done
	return true
}

// respond responds with the result of a function that the scheduler runs.
func respond[T any](w http.ResponseWriter, h *hub, status int, f func() (T, error)) error {
	out, err := query(h, f)
	if err != nil {
		return err
	}
	return answer.JSON(w, status, out)
}

// query is like call, and returns the results of the function. After the end of the scheduler it returns errStopped.
func query[T any](h *hub, f func() (T, error)) (out T, err error) {
	if !h.call(func() { out, err = f() }) {
		err = errStopped
	}
	return out, err
}

// stop ends the scheduler and the watcher, and closes all open streams.
func (h *hub) stop() {
	h.post(func() { h.stopping = true })
	<-h.done
	h.watcher.stop()
}

const (
	inboxShare = 64  // maximum number of inbox functions that run before the scheduler checks the clock again
	passShare  = 512 // number of streams that a pass serves before it checks the inbox
)

// run is the loop of the scheduler. It returns after stop, when the inbox is empty and all streams are closed.
func (h *hub) run() {
	defer close(h.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !h.stopping {
		h.serveTicks()
		pending := h.handleInbox(inboxShare)
		h.retryLagging()
		h.expireResumable()
		h.releaseMemory()
		if pending || h.stopping {
			continue
		}
		timer.Reset(h.nextWait())
		select {
		case <-h.wake:
		case <-timer.C:
		}
	}
	h.finishInbox()
	h.closeAll()
	h.batch.stop()
}

// finishInbox closes the inbox and runs its functions, so that no call waits forever.
func (h *hub) finishInbox() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	for h.handleInbox(inboxShare) {
	}
}

// handleInbox runs up to n functions of the inbox, and reports whether more are waiting.
func (h *hub) handleInbox(n int) bool {
	for ; n > 0; n-- {
		if len(h.work) == 0 {
			if !h.waiting.Load() {
				return false
			}
			h.mu.Lock()
			h.work, h.inbox = h.inbox, nil
			h.waiting.Store(false)
			h.mu.Unlock()
		}
		f := h.work[0]
		h.work[0] = nil
		h.work = h.work[1:]
		f()
	}
	return len(h.work) > 0 || h.waiting.Load()
}

// nextWait returns the time until the scheduler has to act, at most one second.
func (h *hub) nextWait() time.Duration {
	now := h.clk.elapsed()
	next := now + time.Second
	if !h.draining {
		next = min(next, h.wheel.dueAt(h.tick+1))
	}
	if len(h.lagging) > 0 {
		next = min(next, h.retryAt)
	}
	if d := oldest(&h.resumable); d != nil {
		next = min(next, h.expiry(d))
	}
	return max(0, next-now)
}

const (
	rampStreams = 500             // minimum number of new streams in a ramp
	rampQuiet   = 2 * time.Second // time without a new stream after which the ramp has ended
)

// releaseMemory returns unused memory to the system after a ramp, because the requests of a ramp leave garbage.
func (h *hub) releaseMemory() {
	if h.newStreams >= rampStreams && h.clk.elapsed()-h.lastAttach > rampQuiet {
		h.newStreams = 0
		go debug.FreeOSMemory()
	}
}
