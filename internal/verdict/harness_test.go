package verdict

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// judgeSoak judges streams that were to be open for the whole run, by all criteria that there are for such.
func judgeSoak(m *shard.Merged, server ServerLedger, e Evidence) *Verdict {
	e.Rounds, e.Server = []*shard.Merged{m}, server
	s := StreamsOf(m, server, e.OneHost)
	return Judge(&e, Assessment{
		Streams: s, Warnings: s.Warnings, Passed: s.Passed(), Doubts: []Criterion{s.Unnoticed()},
		Criteria: slices.Concat(s.Cut(), s.Faults(), s.HeldThroughout(), []Criterion{s.KeptUp()}, s.Agreement()),
	})
}
