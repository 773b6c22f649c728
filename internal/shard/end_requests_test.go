package shard

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func TestRequestsThatEndStreamsAddUp(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 500e6)
	one, two, without := newControlShard(1, nil), newControlShard(2, nil), newControlShard(3, nil)
	one.EndRequests, two.EndRequests = new(EndRequests), new(EndRequests)
	all := new(EndRequests)
	for n := range 1000 {
		duration, server := time.Duration(n+1)*time.Millisecond, "backend-1"
		part, code := one.EndRequests, CodeOK
		if n%3 == 0 {
			part, server = two.EndRequests, "backend-2"
		}
		if n == 500 {
			code = CodeStatus + "404"
		}
		ended := at.Add(duration)
		part.Add(server, code, ended, duration)
		all.Add(server, code, ended, duration)
	}
	first := one.EndRequests.Copy()
	for _, order := range [][]*Shard{{one, two, without}, {without, two, one}} {
		m := Merge(plan.Plan{}, order)
		require.Equal(t, all, m.EndRequests, "the sum must not depend on the order of the shards")
	}
	require.Equal(t, first, one.EndRequests, "a merge must not modify its inputs")
	require.Nil(t, Merge(plan.Plan{}, []*Shard{without}).EndRequests)

	require.Equal(t, [][2]int64{{1_700_000_000, 499}, {1_700_000_001, 501}}, all.Seconds)
	require.Equal(t, map[string]int64{"status-404": 1}, all.Codes())
	require.Equal(t, []string{"backend-1", "backend-2"}, all.Servers())
	good := all.Sum(func(o *EndOutcome) bool { return o.Code == CodeOK })
	require.EqualValues(t, 999, good.Duration.Count())
	require.EqualValues(t, 1000, good.MinUS)
	require.Equal(t, time.Second, good.Duration.Max())
	require.EqualValues(t, 1_000_000, good.LastUS-good.FirstUS, "requests that started together must span the duration of the slowest")
	require.Nil(t, all.Sum(func(o *EndOutcome) bool { return o.Code == CodeWrongContent }))
}

// A server may send a different name in each response. A shard keeps a limited number of names, and counts every
// request.
func TestServersBeyondTheLimitAreGrouped(t *testing.T) {
	t.Parallel()
	var e EndRequests
	for n := range 2 * maxServers {
		e.Add(fmt.Sprintf("%0*d", 200+n%2, n), CodeOK, time.Unix(1, 0), time.Millisecond)
		e.Add(fmt.Sprint("s", n), CodeOK, time.Unix(1, 0), time.Millisecond)
	}
	e.Add("", CodeNet+"1212", time.Unix(1, 0), time.Millisecond)
	require.Len(t, e.Outcomes, maxServers+2)
	require.Contains(t, e.Servers(), Other)
	require.EqualValues(t, 4*maxServers+1, e.Sum(func(*EndOutcome) bool { return true }).Duration.Count())
	for n := range 3 * maxEndOutcomes { // with many statuses
		e.Add(fmt.Sprint("s", n%50), fmt.Sprint(CodeStatus, n%800), time.Unix(1, 0), time.Millisecond)
	}
	s := newControlShard(1, nil)
	s.EndRequests = &e
	require.NoError(t, s.checkEnds())
	require.EqualValues(t, 4*maxServers+1+3*maxEndOutcomes, e.Sum(func(*EndOutcome) bool { return true }).Duration.Count())
}

func TestImpossibleEndRequestsAreRejected(t *testing.T) {
	t.Parallel()
	s := newControlShard(1, nil)
	s.Runner.StartedUS, s.Runner.EndedUS = 1_700_000_000e6, 1_700_000_100e6
	newEnds := func() *EndRequests {
		var e EndRequests
		e.Add("a", CodeOK, time.Unix(1_700_000_090, 0), 30*time.Millisecond)
		return &e
	}
	s.EndRequests = newEnds()
	back, err := reread(t, s)
	require.NoError(t, err)
	require.Equal(t, s.EndRequests, back.EndRequests)
	for name, change := range map[string]func(e *EndRequests){
		"no requests":                 func(e *EndRequests) { e.Outcomes[0].Duration = NewHistogram() },
		"no histogram":                func(e *EndRequests) { e.Outcomes[0].Duration = nil },
		"before the run":              func(e *EndRequests) { e.Outcomes[0].FirstUS -= 100e6 },
		"after the run":               func(e *EndRequests) { e.Outcomes[0].LastUS += 100e6 },
		"an end before the start":     func(e *EndRequests) { e.Outcomes[0].FirstUS += 1e6 },
		"a negative minimum":          func(e *EndRequests) { e.Outcomes[0].MinUS = -1 },
		"a minimum above the maximum": func(e *EndRequests) { e.Outcomes[0].MinUS = 1e6 },
		"a long name":                 func(e *EndRequests) { e.Outcomes[0].Server = string(make([]byte, maxText+1)) },
		"a different count":           func(e *EndRequests) { e.Seconds[0][1]++ },
		"a second after the run":      func(e *EndRequests) { e.Seconds[0][0] += 1000 },
		"a second twice":              func(e *EndRequests) { e.Seconds = append(e.Seconds, e.Seconds[0]) },
		"many servers": func(e *EndRequests) {
			for n := range maxServers + 2 {
				e.addOutcome(EndOutcome{Server: fmt.Sprint(n), Code: CodeOK, FirstUS: e.Outcomes[0].FirstUS, LastUS: e.Outcomes[0].LastUS, MinUS: 1, Duration: e.Outcomes[0].Duration})
			}
		},
	} {
		s.EndRequests = newEnds()
		change(s.EndRequests)
		require.ErrorContains(t, s.check(), "impossible requests to end streams", name)
	}
}
