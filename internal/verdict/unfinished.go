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

// An end is how a stream ended that the server did not end properly when asked.
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

// unfinished describes the streams that the server did not end properly when asked.
func (s *Streams) unfinished() (out []string) {
	count, errs := map[end]int{}, map[string]int{}
	for c := range s.Records() {
		e := endOf(c)
		if count[e]++; e == endedByError {
			errs[c.Reason]++
		}
	}
	if n := count[endTimedOut]; n > 0 {
		out = append(out, fmt.Sprintf("the server did not end %s within %s of the request (END_TIMEOUT)", format.Count(n, "stream"), format.Duration(s.m.Plan.EndTimeout())))
	}
	if n := count[endedByError]; n > 0 {
		var reasons []string
		for _, reason := range slices.Sorted(maps.Keys(errs)) {
			reasons = append(reasons, fmt.Sprintf("%s (%s)", reason, times(errs[reason])))
		}
		out = append(out, fmt.Sprintf("%s with an error after the request to end: %s",
			format.Plural(n, "stream ended", "streams ended"), strings.Join(reasons, ", ")))
	}
	if n := count[endStopped]; n > 0 {
		out = append(out, format.Plural(n, "stream was", "streams were")+" open when the run was stopped, or when the script closed it")
	}
	return out
}
