package sse

import (
	"runtime/debug"
	"sync"
	"time"
)

// ramp gives the memory that connecting took back to the operating system, once, when
// a ramp is over: of some 10 KB per connection 7 are garbage of the dial that Go would
// keep for hours, as a stream that is only read makes none. One for the process.
type ramp struct {
	least int           // connections opened that make a ramp
	quiet time.Duration // without another one that ends it
	free  func()

	mu     sync.Mutex
	count  int // since the last time memory was given back
	latest time.Time
}

var processRamp = &ramp{least: 500, quiet: 3 * time.Second, free: debug.FreeOSMemory}

// opened notes one more connection.
func (r *ramp) opened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = time.Now()
	if r.count++; r.count == r.least {
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
	r.count = 0
	r.mu.Unlock()
	r.free()
}
