package verdict

import (
	"cmp"
	"slices"
	"sort"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A response is late if it takes over lateFactor times as long as the longest response of the minute before the action.
const lateFactor = 2

// A ResponseEffect counts the responses after the start of an action. It ends when the command has ended and no
// response was faulty for a minute. It ends earlier if the next action starts or the last response has ended. Until is
// a Unix time; Drained is in seconds since the start of the action.
type ResponseEffect struct {
	Until    float64 `json:"until_unix_s"`
	InFlight int     `json:"in_flight"` // responses in flight when the action started
	// Drained is the time when the last of these responses had ended; nil: none was in flight.
	Drained  *float64 `json:"drained_s,omitempty"`
	Complete int      `json:"complete"`
	// Faulty counts the responses that are neither complete nor abandoned, by state.
	Faulty map[ledger.ResponseState]int `json:"faulty,omitempty"`
	// Late counts complete responses that took over LateLimit seconds, which is lateFactor times the longest response
	// of the minute before the action; nil: none completed in that minute.
	Late      *int     `json:"finished_late,omitempty"`
	LateLimit float64  `json:"late_over_s,omitempty"`
	Slowest   *float64 `json:"slowest_s,omitempty"` // the longest duration of a complete response
	// Notes state which data the counts omit.
	Notes []string `json:"notes,omitempty"`
}

func responseEffects(actions []Action, r *shard.Responses) {
	var all []shard.LoggedResponse // in the order of their ends
	unlisted := int64(0)
	for i := range r.Logs {
		all = slices.AppendSeq(all, r.Logs[i].All())
		unlisted += r.Logs[i].Unlisted
	}
	slices.SortStableFunc(all, func(a, b shard.LoggedResponse) int { return cmp.Compare(a.To, b.To) })
	for a, next := range startedActions(actions) {
		a.Responses = effectOnResponses(a, next, all)
		if unlisted > 0 {
			a.Responses.Notes = []string{format.Plural(unlisted, "response is", "responses are") + " not in the log of a runner, which was full: the counts are lower bounds"}
		}
	}
}

func effectOnResponses(a *Action, next float64, all []shard.LoggedResponse) *ResponseEffect {
	e := &ResponseEffect{Faulty: map[ledger.ResponseState]int{}}
	start := a.StartedUnix
	from := sort.Search(len(all), func(i int) bool { return all[i].To >= start })
	before, after := all[:from], all[from:]
	active, until := max(start, a.EndedUnix), max(start, a.EndedUnix)
	for _, r := range after {
		if isFaulty(r.State) && r.To < next && r.From <= active+settleTime.Seconds() {
			active = max(active, r.To)
		}
		until = max(until, r.To)
		if r.From < start {
			e.InFlight++
			e.Drained = maxSeconds(e.Drained, r.To-start)
		}
	}
	e.Until = min(next, active+settleTime.Seconds(), until)
	longest := 0.
	for _, r := range before {
		if r.State == ledger.ResponseComplete && r.To >= start-settleTime.Seconds() {
			longest = max(longest, r.To-r.From)
		}
	}
	late := 0
	for _, r := range after {
		switch duration := r.To - r.From; {
		case r.To > e.Until:
		case isFaulty(r.State):
			e.Faulty[r.State]++
		case r.State == ledger.ResponseComplete:
			e.Complete++
			e.Slowest = maxSeconds(e.Slowest, duration)
			if duration > lateFactor*longest {
				late++
			}
		}
	}
	if longest > 0 {
		e.Late, e.LateLimit = &late, lateFactor*longest
	}
	return e
}

func maxSeconds(current *float64, seconds float64) *float64 {
	if current == nil || seconds > *current {
		return &seconds
	}
	return current
}

// isFaulty reports whether a response in the given state should have completed, but did not.
func isFaulty(state ledger.ResponseState) bool {
	return state != ledger.ResponseComplete && state != ledger.ResponseAbandoned
}
