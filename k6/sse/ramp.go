package sse

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// ramp gives the memory that connecting took back to the operating system, once, when
// a ramp is over: of some 10 KB per connection 7 are garbage of the dial, and over TLS
// 110 of 120, that Go would keep for hours, as a stream that is only read makes none.
// While it lasts garbage is collected more often, or what stays would lie scattered in
// what goes. One for the process.
type ramp struct {
	least int           // connections opened that make a ramp
	quiet time.Duration // without another one that ends it
	hurry func() (usual func())
	free  func()

	mu     sync.Mutex
	count  int // since the last time memory was given back
	latest time.Time
	usual  func() // ends the hurry; nil where there is none
}

var processRamp = &ramp{least: 500, quiet: 3 * time.Second, hurry: processThrift.ramp, free: giveBack}

// begun is called when k6 itself has begun, and loads the script: what that takes does not come on top.
var begun = sync.OnceFunc(leavePages)

// beginRamp makes room for the first ramp: what k6 took to begin is not needed any more.
var beginRamp = sync.OnceFunc(giveBack)

func giveBack() {
	debug.FreeOSMemory()
	leavePages()
}

const (
	// thriftyGCPercent is GOGC while a ramp lasts.
	thriftyGCPercent = 10
	// heldGarbage is how much may lie about while streams are held in Go: they make none, so what little there is, of k6 and of what
	// is told each second, would at all that lives take as much memory again, and at a tenth of it a collection every two seconds.
	heldGarbage = 3 << 19 // bytes
)

// thrift is how often garbage is collected, for the process.
type thrift struct {
	mu    sync.Mutex
	ramps int // that last
	holds int // of streams
	was   int // GOGC without these
	live  func() uint64
}

var processThrift = thrift{live: liveHeap}

// ramp lowers GOGC until the function that it returns is called, where it is higher and not off.
func (t *thrift) ramp() (end func()) { return t.use(&t.ramps) }

// hold does so while streams are held, as long as there is no ramp.
func (t *thrift) hold() (end func()) { return t.use(&t.holds) }

func (t *thrift) use(count *int) (end func()) {
	t.count(count, +1)
	return sync.OnceFunc(func() { t.count(count, -1) })
}

func (t *thrift) count(count *int, by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ramp, held := t.ramps > 0, t.holds > 0
	*count += by
	if ramp == (t.ramps > 0) && held == (t.holds > 0) {
		return // to set GOGC waits for a collection
	}
	if !ramp && !held {
		t.was = debug.SetGCPercent(-1)
	}
	percent := t.was
	switch {
	case t.was < thriftyGCPercent: // which includes off
	case t.ramps > 0:
		percent = thriftyGCPercent
	case t.holds > 0:
		percent = min(heldGCPercent(t.live()), t.was)
	}
	debug.SetGCPercent(percent)
}

// heldGCPercent is GOGC while streams are held and so many bytes live.
func heldGCPercent(live uint64) int { return max(int(100*heldGarbage/max(live, 1)), thriftyGCPercent) } //nolint:gosec // G115: below 1<<63

// liveHeap is what the last collection left, in bytes.
func liveHeap() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// opened notes one more connection.
func (r *ramp) opened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = time.Now()
	if r.count++; r.count == max(r.least/10, 1) {
		r.usual = r.hurry()
		time.AfterFunc(r.quiet, r.check)
	}
}

// check gives memory back if the ramp is over, or looks again later.
func (r *ramp) check() {
	r.mu.Lock()
	if left := r.quiet - time.Since(r.latest); left > 0 {
		time.AfterFunc(left, r.check)
		r.mu.Unlock()
		return
	}
	over := r.count >= r.least
	r.count = 0
	r.usual()
	r.mu.Unlock()
	if over {
		r.free()
	}
}
