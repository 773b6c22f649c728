package verdict

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// EndRequests counts the requests that ended the streams, over all runners. Times run from the start of the request,
// including the wait for a connection, to the last byte of the response.
type EndRequests struct {
	Request string `json:"request"` // name of the request, as in the metrics
	EndTimes
	Failed       int64            `json:"failed"`
	Failures     map[string]int64 `json:"failures,omitempty"` // by outcome: status-404, net-1220
	FailedMS     *Quantiles       `json:"failed_ms,omitempty"`
	FirstUnix    float64          `json:"first_unix_s"`      // start of the first request
	Seconds      float64          `json:"seconds"`           // from the start of the first request to the end of the last
	PerSecond    float64          `json:"per_second"`        // requests with the expected response
	MaxPerSecond int64            `json:"max_per_second"`    // requests that ended within one second, with any response
	Servers      []EndServer      `json:"servers,omitempty"` // if there are several
}

// EndTimes are the times of requests with the expected response.
type EndTimes struct {
	Count int64     `json:"count"`
	MinMS float64   `json:"min_ms"`
	MS    Quantiles `json:"ms"`
}

// An EndServer counts the responses of one of several servers.
type EndServer struct {
	Name string `json:"name"`
	EndTimes
	Failed int64 `json:"failed"`
}

func (c *Counts) addEndRequests(m *shard.Merged) {
	e := m.EndRequests
	if e == nil || len(e.Outcomes) == 0 {
		return
	}
	all, failed := e.Sum(func(*shard.EndOutcome) bool { return true }), e.Sum(isFailure)
	out := &EndRequests{
		Request: m.Service.EndRequest, EndTimes: endTimes(e.Sum(isExpected)), FirstUnix: float64(all.FirstUS) / 1e6,
		Seconds: float64(all.LastUS-all.FirstUS) / 1e6,
	}
	if out.Seconds > 0 {
		out.PerSecond = float64(out.Count) / out.Seconds
	}
	if failed != nil {
		q := quantiles(failed.Duration)
		out.Failed, out.Failures, out.FailedMS = failed.Duration.Count(), e.Codes(), &q
	}
	for _, s := range e.Seconds {
		out.MaxPerSecond = max(out.MaxPerSecond, s[1])
	}
	if names := e.Servers(); len(names) > 1 {
		for _, name := range names {
			sum := func(match func(*shard.EndOutcome) bool) *shard.EndOutcome {
				return e.Sum(func(o *shard.EndOutcome) bool { return o.Server == name && match(o) })
			}
			server := EndServer{Name: name, EndTimes: endTimes(sum(isExpected))}
			if failed := sum(isFailure); failed != nil {
				server.Failed = failed.Duration.Count()
			}
			out.Servers = append(out.Servers, server)
		}
	}
	c.EndRequests = out
}

func isExpected(o *shard.EndOutcome) bool { return o.Code == shard.CodeOK }
func isFailure(o *shard.EndOutcome) bool  { return !isExpected(o) }

// endTimes returns the times of an outcome; zero if o is nil.
func endTimes(o *shard.EndOutcome) EndTimes {
	if o == nil {
		return EndTimes{}
	}
	return EndTimes{Count: o.Duration.Count(), MinMS: float64(o.MinUS) / 1000, MS: quantiles(o.Duration)}
}

// minSlowRatio is the smallest ratio of the duration of end requests to the lateness of messages at which slowEndsText
// returns a warning.
const minSlowRatio = 5

// slowEndsText returns a warning if the requests that end streams are slow although messages are on time; otherwise "".
func (s *Streams) slowEndsText() string {
	e, late, noun := s.EndRequests, s.LatenessMS.P99, s.m.Service.Noun()
	switch {
	case e == nil || e.Count == 0:
		return ""
	case !s.m.Service.HasInterval() && s.LatencyMS == nil: // the lateness of messages is unknown
		return ""
	case !s.m.Service.HasInterval():
		late = s.LatencyMS.P99
	case s.m.Lateness.Count() == 0:
		return ""
	}
	limit := format.InMilliseconds(s.m.Plan.LateLimit())
	if e.MS.P95 < limit || late >= limit || e.MS.P95 < minSlowRatio*late {
		return ""
	}
	text := fmt.Sprintf("the requests that end the streams (%s) are slow, and the %ss are not: half of the requests took over %s, 5 %% over %s; 99 %% of the %ss were at most %s late",
		e.Request, noun, format.Milliseconds(e.MS.P50), format.Milliseconds(e.MS.P95), noun, format.Milliseconds(late))
	if stall := s.stallDuringEnds(e); stall > e.MS.P95/2 {
		return text + fmt.Sprintf("; a runner stalled for %s meanwhile, so the load generator may be the cause", format.Milliseconds(stall))
	}
	return text + "; check how the service ends a stream: a lock, a search through all streams, a write to a database"
}

// stallDuringEnds returns the longest stall of a runner while the requests were made, in milliseconds.
func (s *Streams) stallDuringEnds(e *EndRequests) (longest float64) {
	for _, b := range s.m.Series {
		from := float64(b.Unix)
		if from+shard.BucketWidth.Seconds() > e.FirstUnix && from < e.FirstUnix+e.Seconds {
			longest = max(longest, float64(b.StallMS))
		}
	}
	return longest
}
