package sse

import (
	"time"

	"go.k6.io/k6/v2/js/common"
)

// stays is for how long a connection is kept half-open: longer than any kernel believes in it.
const stays = 24 * time.Hour

// vanish leaves the open stream half-open, as a machine does that is gone. It returns false where no stream is open, and
// throws where this system cannot do that. On the event loop.
func (s *source) vanish() bool {
	if err := canVanish(); err != nil {
		common.Throw(s.hub.vu.Runtime(), err)
	}
	return s.ready == stateOpen && s.Cut(CutHalf, stays)
}
