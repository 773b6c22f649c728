package sseclient

import (
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// A ramp returns memory to the operating system after many connections were opened. About 7 of 10 KB per connection,
// and 110 of 120 KB with TLS, are garbage from the dial. Go would keep that memory for hours, because open streams do
// not allocate.
type ramp struct {
	threshold int           // minimum number of connections of a ramp
	quiet     time.Duration // time without a new connection that ends a ramp
	free      func()        // returns memory

	mu     sync.Mutex
	count  int       // number of connections since the last call of free
	latest time.Time // time of the latest connection
}

var processRamp = &ramp{threshold: 500, quiet: 3 * time.Second, free: releaseMemory}

// gcPercent is the value of GOGC unless the user has set it. It costs little CPU, because open streams allocate little.
const gcPercent = 10

// LimitMemory applies gcPercent, and returns the memory that only the start of the process needed. Only the first call
// has an effect. A process with many streams calls it before the first stream.
var LimitMemory = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	releaseMemory()
})

// releaseMemory returns garbage, and pages of the program's file that are not in use, to the operating system.
func releaseMemory() {
	debug.FreeOSMemory()
	releasePages()
}

func (r *ramp) opened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = time.Now()
	if r.count++; r.count == r.threshold {
		time.AfterFunc(r.quiet, r.check)
	}
}

func (r *ramp) check() {
	r.mu.Lock()
	if remaining := r.quiet - time.Since(r.latest); remaining > 0 {
		time.AfterFunc(remaining, r.check)
		r.mu.Unlock()
		return
	}
	r.count = 0
	r.mu.Unlock()
	r.free()
}
