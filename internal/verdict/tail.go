package verdict

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// addTail creates one finding from all evidence of messages missing after the last one that arrived, so that each
// message is listed once. The interval shows how many messages were due; the server's ledger shows how many were sent.
// It returns the record with that finding, and a mismatch of a different kind with the server's entry.
func (s *Streams) addTail(i int, r *shard.Connection, e *ServerEntry) (*shard.Connection, difference) {
	sent, unnoticed, mismatch := s.compare(r, e)
	if unnoticed > 0 && !numbersKnown(r) && r.Tail == 0 && r.State == ledger.Completed { // any message of the stream may be lost
		r = s.conclude(i, r, ledger.Finding{Kind: ledger.KindLost, Count: unnoticed, At: r.ClosedAt, Source: ledger.SourceServer, Sent: unnoticed})
		r.Lost += unnoticed
		return r, mismatch
	}
	if r.Tail+unnoticed == 0 {
		return r, mismatch
	}
	r = s.mutableConnection(i, r)
	r.Tail += unnoticed
	first := r.Last + 1
	if !numbersKnown(r) {
		first = r.Arrived() + r.Lost + r.Unsent + 1
	}
	tail := ledger.Finding{Kind: ledger.KindTail, From: first, To: first + r.Tail - 1, Count: r.Tail, At: r.ClosedAt, Sent: min(sent, r.Tail)}
	if tail.Sent > 0 {
		tail.Source = ledger.SourceServer
	}
	findings := slices.DeleteFunc(slices.Clone(r.Findings), func(f ledger.Finding) bool {
		if f.Kind == ledger.KindTail {
			tail.At = f.At
		}
		return f.Kind == ledger.KindTail
	})
	r.Findings = append(findings, tail)
	return r, mismatch
}

// numbersKnown reports whether the number of the next message is known: the messages have numbers, or none arrived.
func numbersKnown(r *shard.Connection) bool { return r.Numbered || r.Arrived() == 0 }
