package shard

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"time"
)

// EndRequests counts the requests that a runner, or all runners of a run, sent to end streams.
type EndRequests struct {
	Outcomes []EndOutcome `json:"outcomes"`
	// Seconds are pairs of a Unix time and the number of requests that ended in that second, sorted by time.
	Seconds [][2]int64 `json:"seconds"`
}

// An EndOutcome sums up the requests with one outcome at one server. A duration lasts from the request for a connection
// to the last byte of the response.
type EndOutcome struct {
	Server   string     `json:"server,omitempty"` // name that the server reports, or the requested host
	Code     string     `json:"code"`             // see TagCode
	FirstUS  int64      `json:"first_unix_us"`    // start of the first request
	LastUS   int64      `json:"last_unix_us"`     // end of the last request
	MinUS    int64      `json:"min_us"`
	Duration *Histogram `json:"duration"`
}

// maxServers is the maximum number of servers that a shard lists by name. All others count as Other, to limit the
// memory.
const maxServers = 100

const (
	// maxEndOutcomes is the maximum number of outcomes of a shard. From half of it on, new outcomes have the server
	// Other. A shard has fewer than 1000 codes.
	maxEndOutcomes = 2000
	maxServerName  = 100 // bytes
)

// Add counts a request that ended at the time endedAt.
func (e *EndRequests) Add(server, code string, endedAt time.Time, duration time.Duration) {
	server = server[:min(len(server), maxServerName)]
	o := e.outcome(server, code)
	if o == nil {
		if servers := e.Servers(); len(e.Outcomes) >= maxEndOutcomes/2 || len(servers) >= maxServers && !slices.Contains(servers, server) {
			server = Other
		}
		e.addOutcome(EndOutcome{Server: server, Code: code, FirstUS: math.MaxInt64, MinUS: math.MaxInt64, Duration: NewHistogram()})
		o = e.outcome(server, code)
	}
	o.FirstUS, o.LastUS = min(o.FirstUS, endedAt.Add(-duration).UnixMicro()), max(o.LastUS, endedAt.UnixMicro())
	o.MinUS = min(o.MinUS, duration.Microseconds())
	o.Duration.Record(duration)
	e.addSecond(endedAt.Unix(), 1)
}

func (e *EndRequests) outcome(server, code string) *EndOutcome {
	i := slices.IndexFunc(e.Outcomes, func(have EndOutcome) bool { return have.Server == server && have.Code == code })
	if i < 0 {
		return nil
	}
	return &e.Outcomes[i]
}

// addOutcome adds an outcome to the one with the same server and code, if any. It does not modify the histogram of o.
func (e *EndRequests) addOutcome(o EndOutcome) {
	have := e.outcome(o.Server, o.Code)
	if have == nil {
		o.Duration = o.Duration.Copy()
		e.Outcomes = append(e.Outcomes, o)
		slices.SortFunc(e.Outcomes, func(a, b EndOutcome) int {
			return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Code, b.Code))
		})
		return
	}
	have.FirstUS, have.LastUS, have.MinUS = min(have.FirstUS, o.FirstUS), max(have.LastUS, o.LastUS), min(have.MinUS, o.MinUS)
	have.Duration.Merge(o.Duration)
}

// addSecond counts n requests that ended in a second.
func (e *EndRequests) addSecond(second, n int64) {
	i, ok := slices.BinarySearchFunc(e.Seconds, second, func(have [2]int64, second int64) int { return cmp.Compare(have[0], second) })
	if !ok {
		e.Seconds = slices.Insert(e.Seconds, i, [2]int64{second, 0})
	}
	e.Seconds[i][1] += n
}

// Merge adds the requests of another runner.
func (e *EndRequests) Merge(other *EndRequests) {
	for _, o := range other.Outcomes {
		e.addOutcome(o)
	}
	for _, second := range other.Seconds {
		e.addSecond(second[0], second[1])
	}
}

// Copy returns a copy, or nil if e is nil.
func (e *EndRequests) Copy() (out *EndRequests) {
	mergePart(&out, e)
	return out
}

func (s *Shard) checkEnds() error {
	if s.EndRequests == nil {
		return nil
	}
	invalid := errors.New("impossible requests to end streams")
	from, to := s.Runner.StartedUS-slack.Microseconds(), s.Runner.EndedUS+slack.Microseconds()
	byOutcome, bySecond, servers := int64(0), int64(0), map[string]bool{}
	for _, o := range s.EndRequests.Outcomes {
		servers[o.Server] = true
		if o.Duration == nil || o.Duration.Count() < 1 || o.Duration.Count() > maxNumber || o.FirstUS < from || o.LastUS > to || o.FirstUS > o.LastUS ||
			o.MinUS < 0 || o.MinUS > o.Duration.Max().Microseconds() || len(o.Server)+len(o.Code) > maxText {
			return invalid
		}
		byOutcome += o.Duration.Count()
	}
	last := int64(0)
	for _, second := range s.EndRequests.Seconds {
		if second[0] < from/1e6-1 || second[0] > to/1e6 || second[0] <= last || second[1] < 1 || !areCounts(second[1]) {
			return invalid
		}
		last = second[0]
		bySecond += second[1]
	}
	// Other, and "" for an unknown server, are in addition to maxServers.
	if len(s.EndRequests.Outcomes) > maxEndOutcomes || len(s.EndRequests.Seconds) > maxSeconds || len(servers) > maxServers+2 || byOutcome != bySecond {
		return invalid
	}
	return nil
}

// Codes returns the number of requests by code. It omits CodeOK.
func (e *EndRequests) Codes() map[string]int64 {
	out := map[string]int64{}
	for _, o := range e.Outcomes {
		if o.Code != CodeOK {
			out[o.Code] += o.Duration.Count()
		}
	}
	return out
}

// Servers returns the sorted names of the servers. It omits "", an unknown server.
func (e *EndRequests) Servers() []string {
	names := map[string]bool{}
	for _, o := range e.Outcomes {
		if o.Server != "" {
			names[o.Server] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Sum returns the sum of the outcomes for which matches returns true, without server and code. It returns nil if there
// is no such outcome.
func (e *EndRequests) Sum(matches func(o *EndOutcome) bool) *EndOutcome {
	var sum EndRequests
	for _, o := range e.Outcomes {
		if matches(&o) {
			o.Server, o.Code = "", ""
			sum.addOutcome(o)
		}
	}
	if len(sum.Outcomes) == 0 {
		return nil
	}
	return &sum.Outcomes[0]
}
