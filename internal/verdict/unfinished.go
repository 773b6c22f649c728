package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// An end is how a connection ended that the server did not end properly when asked.
type end int

const (
	otherEnd     end = iota // it was completed, dropped or refused
	endTimedOut             // the client asked for the end and gave up waiting
	endedByError            // the stream broke after the client had asked for its end
	endStopped              // the run was stopped, or the script closed the stream without asking for its end
)

func endOf(r *shard.Connection) end {
	asked := r.Held > r.Open
	switch {
	case r.State == ledger.Planned, r.State == ledger.Connecting, r.State == ledger.Open:
		return endStopped
	case r.State != ledger.Unfinished:
		return otherEnd
	case r.Reason == ledger.ReasonClient && asked:
		return endTimedOut
	case r.Reason == ledger.ReasonClient, r.Reason == ledger.ReasonInterrupted, r.Reason == "":
		return endStopped
	}
	return endedByError
}

// unfinished says what became of the connections that the server did not end properly when asked.
func (s *Streams) unfinished() (out []string) {
	count, errs := map[end]int{}, map[string]int{}
	for c := range s.Records() {
		e := endOf(c)
		if count[e]++; e == endedByError {
			errs[c.Reason]++
		}
	}
	if n := count[endTimedOut]; n > 0 {
		out = append(out, fmt.Sprintf("%s not come to %s end: the server did not end the stream within %s of the request to (END_TIMEOUT)",
			format.Plural(n, "connection did", "connections did"), format.Form(n, "its", "their"), format.Duration(s.m.Plan.EndTimeout())))
	}
	if n := count[endedByError]; n > 0 {
		var reasons []string
		for _, reason := range slices.Sorted(maps.Keys(errs)) {
			reasons = append(reasons, fmt.Sprintf("%s (%s)", reason, times(errs[reason])))
		}
		out = append(out, fmt.Sprintf("%s with an error after the request to end: %s",
			format.Plural(n, "connection ended", "connections ended"), strings.Join(reasons, ", ")))
	}
	if n := count[endStopped]; n > 0 {
		out = append(out, fmt.Sprintf("%s stopped before %s end: the run was stopped, or the script closed the stream",
			format.Plural(n, "connection was", "connections were"), format.Form(n, "its", "their")))
	}
	return out
}
