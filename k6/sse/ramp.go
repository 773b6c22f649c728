package sse

import (
	"runtime/debug"
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

var processRamp = &ramp{least: 500, quiet: 3 * time.Second, hurry: processThrift.begin, free: giveBack}

// begun is called when k6 itself has begun, and loads the script: what that takes does not come on top.
var begun = sync.OnceFunc(leavePages)

// beginRamp makes room for the first ramp: what k6 took to begin is not needed any more.
var beginRamp = sync.OnceFunc(giveBack)

func giveBack() {
	debug.FreeOSMemory()
	leavePages()
}

// thriftyGCPercent is GOGC while a ramp lasts, and while streams are held in Go: these make no garbage, so that to collect what
// little there is at a tenth of what lives costs nothing, and at all of it would take as much memory again.
const thriftyGCPercent = 10

// thrift is how often garbage is collected, for the process.
type thrift struct {
	mu    sync.Mutex
	users int
	was   int
}

var processThrift thrift

// begin lowers GOGC, where it is higher and not off, until each of those who began has ended.
func (t *thrift) begin() (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users++; t.users == 1 {
		if t.was = debug.SetGCPercent(thriftyGCPercent); t.was < thriftyGCPercent {
			debug.SetGCPercent(t.was)
		}
	}
	return sync.OnceFunc(t.end)
}

func (t *thrift) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users == 0 {
		debug.SetGCPercent(t.was)
	}
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
