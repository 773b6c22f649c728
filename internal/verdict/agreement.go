package verdict

import (
	"fmt"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Agreement compares our counts with two others: the server's ledger, and the script's own checks.
func (s *Streams) Agreement() (out []Criterion) {
	if s.server != nil {
		limit, actual := "agrees", first(s.unexplained, "agrees")
		if s.Server.Confirms {
			limit = "agrees, but for faults found"
			actual = "differs on " + format.Plural(len(s.disagree), "stream", "streams") + ", where faults were found"
		}
		out = append(out, Criterion{
			Name: "the server's own count", Limit: limit, Actual: actual, Pass: len(s.unexplained) == 0, Why: "what it says it sent is what arrived",
			Reasons: s.unexplained,
		})
	}
	var failed []string
	var total int64
	for _, c := range s.m.Checks {
		total += c.Passes + c.Fails
		if c.Fails > 0 {
			failed = append(failed, fmt.Sprintf("the check %q failed %d of %d times", c.Name, c.Fails, c.Passes+c.Fails))
		}
	}
	failed = append(failed, missingChecks(s.m)...)
	return append(out, Criterion{
		Name: "checks of the script", Limit: "all pass", Actual: first(failed, fmt.Sprintf("%d of %d", total, total)),
		Pass: len(failed) == 0, Why: "status of connect and disconnect, and the script's own count", weight: byClock,
		faults:  faults{unheld, unchecked(s.m)},
		loaded:  true, // a script that looks for the breaking point makes no checks
		Reasons: failed,
	})
}

// unchecked is for how many connections a check did not pass: those that did not open or were cut fail it, or do not come
// to it.
func unchecked(m *shard.Merged) (most uint64) {
	for _, c := range m.Checks {
		most = max(most, uint64(max(int64(m.Plan.Connections)-c.Passes, 0)))
	}
	return most
}

// missingChecks finds checks that were not made for every connection: a check that was never made
// cannot fail.
func missingChecks(m *shard.Merged) (out []string) {
	for _, c := range m.Checks {
		if made := c.Passes + c.Fails; made != int64(m.Plan.Connections) {
			out = append(out, fmt.Sprintf("the check %q was made %s for %s", c.Name,
				format.Plural(int(made), "time", "times"), format.Plural(m.Plan.Connections, "connection", "connections")))
		}
	}
	if len(m.Checks) == 0 {
		out = append(out, "the script made no check at all")
	}
	return out
}

// sentMore says that the server sent more noops than arrived, by its own ledger. Duplicates count as arrived: where the
// service keeps a shorter interval than planned, the clock counts every noop too many as one.
func (e *ServerEntry) sentMore(r *shard.Connection) bool {
	switch {
	case e == nil || r.Streams == 0 || wasTaken(r):
		return false
	case r.Numbered || r.Received == 0:
		return e.Last > r.Last
	}
	return e.First <= 1 && e.Sent > r.Received+r.Corrupted+r.Duplicated
}

// compare compares a connection with the server's entry and returns how many noops the server sent
// after the last one that arrived, beyond those that the clock already found missing. If our client
// never had a stream, or got one only after the id had been taken, the entry is that of another client.
func (s *Streams) compare(r *shard.Connection, e *ServerEntry) (lostAtEnd uint64) {
	if s.server == nil || r.Streams == 0 || wasTaken(r) {
		return 0
	}
	if e == nil {
		s.differs("the server has no entry for %s, which held a stream", r.ID)
		return 0
	}
	s.Server.Sent += e.Sent
	s.Runners[r.Runner].ServerSent += e.Sent
	if !r.Numbered && r.Received > 0 {
		return s.compareCount(r, e)
	}
	switch {
	case e.Last > r.Last:
		if after := e.Last - r.Last; after > r.Tail {
			lostAtEnd = after - r.Tail
		}
	case e.Last < r.Last:
		s.differs("%s received number %d, the server says the last it sent was %d", r.ID, r.Last, e.Last)
		return 0
	}
	if arrived := r.Received + r.Corrupted + r.Messages; e.First <= 1 && r.Numberings < 2 && e.Sent != arrived {
		what := "noops"
		if r.Messages > 0 {
			what = "noops and messages"
		}
		s.differs("the server says it sent %d %s to %s, %d arrived", e.Sent, what, r.ID, arrived)
	}
	return lostAtEnd
}

// compareCount is compare for noops without numbers.
func (s *Streams) compareCount(r *shard.Connection, e *ServerEntry) (lost uint64) {
	arrived := r.Received + r.Corrupted
	if e.First > 1 { // it counts from before this run
		return 0
	}
	if e.Sent > arrived+r.Missed() {
		return e.Sent - arrived - r.Missed()
	}
	if e.Sent < arrived {
		s.differs("the server says it sent %d noops to %s, %d arrived", e.Sent, r.ID, arrived)
	}
	return 0
}

func (s *Streams) differs(format string, args ...any) {
	s.disagree = append(s.disagree, fmt.Sprintf(format, args...))
}

// wasTaken says that another client had a stream of this id before ours.
func wasTaken(r *shard.Connection) bool {
	return slices.ContainsFunc(r.Refusals, func(f ledger.Refusal) bool { return f.Reason == taken && f.First < r.OpenedAt })
}
