package soak

import (
	"math/rand/v2"
	"sync"
	"time"

	"go.k6.io/k6/v2/lib"
)

// An arrivals value generates the numbers and the start times of the requests of an open model, or only the numbers in
// a closed model. All runners of a run generate the same arrivals, and each uses the arrivals of its segment. An
// arrivals value is safe for concurrent use.
type arrivals struct {
	mu       sync.Mutex
	index    *lib.SegmentedIndex
	rate     float64    // per second, over all runners
	random   *rand.Rand // for a Poisson process; nil: the rate is constant
	count    int64      // arrivals drawn so far, of a Poisson process
	lastDraw float64    // seconds from the start to the last of these arrivals
}

func newArrivals(tuple *lib.ExecutionTuple, rate float64, poisson bool, seed uint64) *arrivals {
	a := &arrivals{index: lib.NewSegmentedIndex(tuple), rate: rate}
	if poisson {
		a.random = rand.New(rand.NewPCG(seed, 0)) // #nosec G404 -- equal for every runner
	}
	return a
}

// next returns the number of the next arrival of this runner, from 0, and its time after the start.
func (a *arrivals) next() (n int64, after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, number := a.index.Next()
	n = number - 1
	if a.random == nil {
		if a.rate > 0 {
			after = time.Duration(float64(n) / a.rate * float64(time.Second))
		}
		return n, after
	}
	for ; a.count <= n; a.count++ {
		a.lastDraw += a.random.ExpFloat64() / a.rate
	}
	return n, time.Duration(a.lastDraw * float64(time.Second))
}
