package sseclient

import (
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// A rampWatcher returns memory to the operating system after a ramp, which opens many connections. About 7 of 10 KB per
// connection, and 110 of 120 KB with TLS, are garbage from the dial. Go would keep that memory for hours, because open
// streams allocate little.
type rampWatcher struct {
	limitThreshold int           // number of connections at which the limit on garbage takes effect
	rampThreshold  int           // minimum number of connections of a ramp
	quietTime      time.Duration // time without a new connection that ends a ramp
	limit          func()        // limits garbage
	free           func()        // returns memory

	mu     sync.Mutex
	count  int       // number of connections since the last call of free
	latest time.Time // time of the latest connection
}

var processRamp = &rampWatcher{limitThreshold: 100, rampThreshold: 500, quietTime: 3 * time.Second, limit: limitGarbage, free: releaseMemory}

// gcPercent is the value of GOGC for a process that has opened many connections, unless the user has set GOGC. It costs
// little CPU time, because open streams allocate little. With a few connections it would cost a fifth of the CPU time
// of a short run, and save 2 MB.
const gcPercent = 10

func limitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// ReleaseStartMemory returns to the operating system the memory that only the start of the process needed. Only the
// first call has an effect. A process with many streams calls ReleaseStartMemory before the first stream.
var ReleaseStartMemory = sync.OnceFunc(releaseMemory)

// releaseMemory returns garbage, and on Linux the pages of unmodified files, to the operating system.
func releaseMemory() {
	debug.FreeOSMemory()
	releasePages()
}

func (r *rampWatcher) countConnection() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = time.Now()
	r.count++
	if r.count == r.limitThreshold {
		go r.limit() // waits for the end of a garbage collection
	}
	if r.count == r.rampThreshold {
		time.AfterFunc(r.quietTime, r.check)
	}
}

func (r *rampWatcher) check() {
	r.mu.Lock()
	if remaining := r.quietTime - time.Since(r.latest); remaining > 0 {
		time.AfterFunc(remaining, r.check)
		r.mu.Unlock()
		return
	}
	r.count = 0
	r.mu.Unlock()
	r.free()
}
