package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fail adds n failed attempts of 100 ms each, one second apart.
func (p *tape) fail(n int, reason string, reconnects bool) *tape {
	for i := range n {
		p.Connecting(p.at)
		p.wait(sec/10).Closed(p.at, reason, false, reconnects || i < n-1)
		p.wait(9 * sec / 10)
	}
	return p
}

func newUnopenedTape() *tape {
	return &tape{Ledger: New("a-1", &Config{Interval: interval, LatenessLimit: sec}), at: sec}
}

func (p *tape) open() *tape {
	p.Connecting(p.at)
	p.Opened(p.wait(sec / 10).at)
	return p
}

func TestConnectTimeStartsAtTheFirstDial(t *testing.T) {
	t.Parallel()
	p := newUnopenedTape().fail(12, "status 503", true)
	p.fail(5, "connect_timeout", true).open()
	r := p.regular(1, 4, true).end(sec)
	require.Equal(t, Completed, r.State)
	require.Equal(t, 17*sec+sec/10, r.Connect, "the failed dials must count")
	require.Equal(t, 18, r.Attempts)
	require.Equal(t, []Refusal{
		{"status 503", 12, sec + sec/10, 12*sec + sec/10}, {"connect_timeout", 5, 13*sec + sec/10, 17*sec + sec/10},
	}, r.Refusals)
	require.Equal(t, 17, r.RefusedAttempts())
	require.Equal(t, r.Connect, r.OutageTime)
	require.Equal(t, Outage{From: sec, To: r.OpenedAt, Refusals: r.Refusals}, r.Longest)
	require.Equal(t, 4*interval+sec, r.OpenTime)
	require.Empty(t, r.Outages, "no stream was lost")
	require.Zero(t, r.Survived)
}

// All attempts of a client are refused or receive no answer. At the end, the client is between two attempts, in an
// attempt, or in its only attempt.
func TestRefusedClient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end      func(p *tape)
		reason   string
		attempts int
	}{
		"between two attempts": {func(p *tape) {
			p.fail(3, "status 503", true)
			p.CloseRequested(p.at)
		}, "status 503", 3},
		"the run is interrupted": {func(p *tape) {
			p.fail(3, "status 503", true).Connecting(p.at)
			p.Closed(p.at, ReasonInterrupted, false, false)
		}, "status 503", 3},
		"no answer to the only attempt": {func(p *tape) {
			p.Connecting(p.at)
			p.CloseRequested(p.wait(sec).at)
			p.Closed(p.at, ReasonClient, false, false)
		}, ReasonNoAnswer, 0},
		"the client tries again after the request to end": {func(p *tape) {
			p.fail(3, "status 503", true)
			p.CloseRequested(p.at)
			p.fail(2, "status 503", false)
		}, "status 503", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newUnopenedTape()
			c.end(p)
			r := p.Record()
			require.Equal(t, Refused, r.State)
			require.Zero(t, r.Expected())
			require.Equal(t, c.reason, r.Reason)
			require.Equal(t, c.attempts, r.RefusedAttempts())
			require.Len(t, r.Findings, 1)
			require.Equal(t, c.reason, r.Findings[0].Note)
			require.Equal(t, KindRefused, r.Findings[0].Kind)
			require.Equal(t, Outage{From: sec, To: r.Longest.To, Refusals: r.Longest.Refusals}, r.Longest)
			require.Equal(t, r.Longest.To-sec, r.OutageTime)
			require.Empty(t, invariantViolation(r))
		})
	}
}

func TestAllOutagesCount(t *testing.T) {
	t.Parallel()
	const outages = 40
	p := newUnopenedTape().open()
	for n := range outages {
		p.wait(sec).Closed(p.at, "reset", false, true)
		p.wait(time.Duration(n+1)*sec).fail(1, "status 503", true).open()
	}
	r := p.end(sec)
	require.Len(t, r.Outages, maxOutages)
	require.Equal(t, outages, r.Survived)
	require.Equal(t, (outages+1)*sec+sec/10, r.MaxOutage)
	longest := r.Longest
	require.Equal(t, (outages+1)*sec+sec/10, longest.To-longest.From, "the longest outage must be recorded even if it is not listed")
	require.Equal(t, 1, longest.Refusals[0].Count, "an outage must count only its own failed attempts")
	require.Equal(t, outages, r.RefusedAttempts(), "the record must count the failed attempts of all outages")
	sum := sec / 10 // the first connect
	for n := range outages {
		sum += time.Duration(n+2)*sec + sec/10
	}
	require.Equal(t, sum, r.OutageTime)
	require.Equal(t, (outages+1)*sec, r.OpenTime)
}

func TestOpenTimeEndsWithTheRequestToEnd(t *testing.T) {
	t.Parallel()
	p := newUnopenedTape().open()
	p.regular(1, 3, true).CloseRequested(p.at)
	p.Closed(p.wait(10*sec).at, "server", true, false)
	r := p.Record()
	require.Equal(t, 3*interval, r.OpenTime)
	require.Equal(t, 3*interval+10*sec, r.StreamTime)
}

func TestReasonsAreLimited(t *testing.T) {
	t.Parallel()
	p := newUnopenedTape()
	for n := range 100 {
		p.fail(1, fmt.Sprintf("status %d", 500+n), true)
	}
	p.fail(1, "status 500: too busy", true).fail(1, "status 500 (too busy)", true)
	p.CloseRequested(p.at)
	r := p.Record()
	require.Len(t, r.Refusals, maxReasons+1)
	require.Equal(t, 3, r.Refusals[0].Count, "the details after a reason must be ignored")
	require.Equal(t, OtherReasons, r.Refusals[maxReasons].Reason)
	require.Equal(t, 102, r.RefusedAttempts())
}
