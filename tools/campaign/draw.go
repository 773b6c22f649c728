package main

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// drawSchedule draws a schedule of noops. In half of the scenarios its interval differs from the planned one, by up to
// 0.8 %.
func drawSchedule(r *rand.Rand) fakeservice.Schedule {
	s := fakeservice.Schedule{Seed: r.Uint64(), Factor: 1, Jitter: oneOf(r, 0, 0, 0.01, 0.03, 0.1), Phase: oneOf(r, fakeservice.PhaseConnect, fakeservice.PhaseWall, fakeservice.PhaseRandom)}
	if r.IntN(2) == 0 {
		s.Factor += (r.Float64() - 0.5) * 0.016
	}
	return s
}

// drawService draws the properties of a correct service of noops.
func drawService(r *rand.Rand) *fakeservice.ServiceSpec {
	s := &fakeservice.ServiceSpec{
		Schedule: drawSchedule(r),
		IDs:      oneOf(r, fakeservice.IDsNumbers, fakeservice.IDsNone, oneOf(r, slices.Sorted(maps.Keys(fakeservice.ForeignIDs))...)),
		Ledger:   r.IntN(2) == 0,
		Nginx:    r.IntN(3) == 0,
		Format:   fakeservice.Format{Lines: oneOf(r, "\n", "\n", "\r\n", "\r"), BOM: r.IntN(6) == 0},
		Comments: r.IntN(4) == 0,
		EndsLate: r.IntN(5) == 0,
	}
	s.Framing = oneOf(r, "chunks", "chunks", "split", "close")
	return s
}
