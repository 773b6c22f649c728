package verdict

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

const startUnix = 1_700_000_000

// actionAt returns an action that succeeded, the given seconds after the start of the first runner.
func actionAt(name string, at, duration float64) ActionResult {
	return ActionResult{Action: plan.Action{Name: name, At: time.Duration(at) * time.Second, Command: "./" + name}, StartedUnix: startUnix + at, EndedUnix: startUnix + at + duration}
}

// newReconnectRun returns a run whose n clients may reconnect. All clients are on the first runner.
func newReconnectRun(n int) *shard.Merged {
	m, _ := cleanRun()
	m.Plan.Reconnect, m.Plan.Connections, m.Plan.MaxOutageS = true, n, -1
	m.Checks[0].Passes = int64(n)
	record := m.Connections.Edit(0).Record
	m.Connections = shard.Connections{}
	for i := range n {
		record.ID = fmt.Sprint("d-", i)
		m.Connections.Add(&shard.Connection{Record: record})
	}
	return m
}

// lose adds an outage to the nth client, and returns the outage. Times are seconds since the start of the runner.
func lose(m *shard.Merged, n int, from, to float64) *ledger.Outage {
	r := &m.Connections.Edit(n).Record
	second := func(s float64) ledger.Instant { return time.Duration(s * float64(time.Second)) }
	r.Outages = append(r.Outages, ledger.Outage{From: second(from), To: second(to)})
	r.Survived++
	r.Streams++
	r.MaxOutage = max(r.MaxOutage, second(to)-second(from))
	return &r.Outages[len(r.Outages)-1]
}

func TestStreamsLostAfterAnActionAreAttributedToIt(t *testing.T) {
	t.Parallel()
	m := newReconnectRun(200)
	lose(m, 199, 50, 51) // before the action
	for n := range 100 { // one every 20 ms from 60.5 s on, each for 2 s, so 50 reconnect per second
		at := 60.5 + float64(n)/50
		lose(m, n, at, at+2)
	}
	slow := lose(m, 7, 70, 79.5)
	slow.Refusals = []ledger.Refusal{{Reason: "status 502", Count: 3}}
	slow.Replayed = 4
	lose(m, 150, 300, 301) // over a minute after the last reconnect
	m.Connections.Edit(3).Findings = []ledger.Finding{
		{Kind: ledger.KindLost, From: 5, To: 6, Count: 2, At: 62 * time.Second}, {Kind: ledger.KindDuplicated, From: 9, At: 63 * time.Second},
		{Kind: ledger.KindLost, From: 40, To: 40, Count: 1, At: 400 * time.Second},
	}
	v := judgeSoak(m, nil, Evidence{Actions: []ActionResult{actionAt("deploy", 60, 5)}})
	require.Len(t, v.Actions, 1)
	e := v.Actions[0].Effect
	require.Equal(t, []int{100, 101, 0}, []int{e.Lost, e.Losses, e.NotReconnected})
	require.InDelta(t, 50, e.Peak, 1)
	require.InDelta(t, .5, *e.FirstLost, 1e-6)
	require.InDelta(t, 3.5, *e.Reconnected50, .05, "the time must end when 50 % of the lost streams have reconnected")
	require.InDelta(t, 4.48, *e.Reconnected99, .001)
	require.InDelta(t, 19.5, *e.Reconnected100, 1e-6, "the second reconnect of a stream must count")
	require.Equal(t, map[string]int{"status 502": 3}, e.Refused)
	require.EqualValues(t, []uint64{2, 4, 1}, []uint64{e.Missed, *e.Resumed, e.Duplicated})
	require.Equal(t, Outage{ID: "d-7", Unix: startUnix + 70, Seconds: 9.5}, *e.Slowest)
	require.InDelta(t, startUnix+79.5+60, e.Until, 1e-6)
	require.Empty(t, e.Notes)
}

// A lost stream counts for the last action that started before the loss.
func TestLostStreamCountsForOneAction(t *testing.T) {
	t.Parallel()
	m := newReconnectRun(10)
	lose(m, 0, 61, 75) // reconnects after the start of the next action
	lose(m, 1, 71, 72)
	lose(m, 2, 120, 121) // while the long action still runs
	v := judgeSoak(m, nil, Evidence{Actions: []ActionResult{actionAt("second", 70, 40), actionAt("first", 60, 1), {Action: plan.Action{Name: "never"}, ExitCode: -1, Problem: "it did not begin"}}})
	second, first := v.Actions[0].Effect, v.Actions[1].Effect
	require.Equal(t, 1, first.Lost)
	require.InDelta(t, 15, *first.Reconnected100, 1e-6)
	require.InDelta(t, startUnix+70, first.Until, 1e-6)
	require.Equal(t, 2, second.Lost)
	require.InDelta(t, 51, *second.Reconnected100, 1e-6)
	require.Nil(t, v.Actions[2].Effect)
}

func TestStreamsThatDoNotReconnect(t *testing.T) {
	t.Parallel()
	m := newReconnectRun(4)
	lose(m, 0, 61, 62)
	last := &m.Connections.Edit(1).Record
	last.State, last.ClosedAt, last.Longest = ledger.Dropped, 61*time.Second, ledger.Outage{From: 61 * time.Second, To: 3595 * time.Second}
	noRetry := &m.Connections.Edit(2).Record // did not try to reconnect, as without RECONNECT
	noRetry.State, noRetry.ClosedAt = ledger.Dropped, 61*time.Second
	v := judgeSoak(m, nil, Evidence{Actions: []ActionResult{actionAt("deploy", 60, 1)}})
	e := v.Actions[0].Effect
	require.Equal(t, []int{3, 2}, []int{e.Lost, e.NotReconnected})
	require.Nil(t, e.Reconnected50)
	require.Nil(t, e.Reconnected100)
	require.InDelta(t, 3595-60, e.Slowest.Seconds, 2)
	require.Equal(t, Fail, v.Verdict)
	require.Contains(t, failedChecks(v), "99.9 % of clients reconnected")
}

// Streams that a service ends after their lifetime are not attributed to an action, even if they end during the action.
func TestPlannedEndsAreNotAttributedToAnAction(t *testing.T) {
	t.Parallel()
	m := newReconnectRun(4)
	m.Service = shard.Service{Name: "mine", CountBasis: shard.CountNothing, LifetimeS: 30}
	lose(m, 0, 61, 62)
	lose(m, 1, 61, 62).Planned = true
	m.Connections.Edit(2).Spans = []ledger.Span{{From: 1, To: 61 * time.Second}, {From: 62 * time.Second, To: 90 * time.Second}}
	m.Connections.Edit(2).Survived = 1
	e := judgeSoak(m, nil, Evidence{Actions: []ActionResult{actionAt("deploy", 60, 1)}}).Actions[0].Effect
	require.Equal(t, []int{1, 1}, []int{e.Lost, e.Losses})
	require.Equal(t, []string{
		"streams ended 1 more time at an age at which the service may end a stream (end.lifetime, TOKEN_TTL): not counted here, because the action may not be the cause",
		"1 outage of streams that were lost often is neither listed nor counted here",
	}, e.Notes, "the third loss has no known cause")
	require.Nil(t, e.Resumed)
}

// Disconnects by the client, and streams that end because a token expired, are not attributed to an action, even if not
// all outages are listed. Only the unplanned loss is.
func TestUnlistedCutsAreNotAttributedToAnAction(t *testing.T) {
	t.Parallel()
	second := func(n int) ledger.Instant { return time.Duration(n) * time.Second }
	m := newReconnectRun(2)
	m.Service = shard.Service{Name: "mine", CountBasis: shard.CountNothing}
	r := &m.Connections.Edit(0).Record
	r.Outages = []ledger.Outage{{From: second(10), To: second(11), Planned: true, Cut: true}}
	r.Spans = []ledger.Span{
		{From: 1, To: second(10), Planned: true, Cut: true}, {From: second(11), To: second(61), Planned: true, Cut: true},
		{From: second(62), To: second(63), Planned: true}, {From: second(64), To: second(65)}, {From: second(66), To: second(70)},
	}
	r.Survived = 4
	r = &m.Connections.Edit(1).Record // a client whose next stream had not opened when the run ended
	r.ClosedAt, r.LastOutage = second(64), &ledger.Outage{From: second(64), To: second(65), Planned: true}
	e := judgeSoak(m, nil, Evidence{Actions: []ActionResult{actionAt("deploy", 60, 1)}}).Actions[0].Effect
	require.Equal(t, []int{1, 1}, []int{e.Lost, e.Losses})
	require.InDelta(t, 5, *e.FirstLost, 1e-6)
	require.Len(t, e.Notes, 1)
	require.Contains(t, e.Notes[0], "streams ended 2 more times at an age", "the note must count clients that reconnected and clients that did not")

	m = newReconnectRun(2) // records of noops have no spans
	r = &m.Connections.Edit(0).Record
	r.Outages, r.Survived = []ledger.Outage{{From: second(10), To: second(11), Planned: true, Cut: true}}, 3
	r.Cuts = &ledger.Cuts{List: []ledger.Cut{{Kind: "fin", Lost: true, ReconnectedAt: second(11)}, {Kind: "rst", Lost: true, ReconnectedAt: second(62)}, {Kind: "pause", ReconnectedAt: second(70)}}}
	e = judgeSoak(m, nil, Evidence{Actions: []ActionResult{actionAt("deploy", 60, 1)}}).Actions[0].Effect
	require.Zero(t, e.Lost)
	require.Equal(t, []string{"1 outage of streams that were lost often is neither listed nor counted here"}, e.Notes)
}

// Messages that were published during an outage and arrived after it count as resumed.
func TestMessagesAfterAnActionAreResumed(t *testing.T) {
	t.Parallel()
	for lost, want := range map[uint64][2]uint64{0: {3, 0}, 12: {2, 1}} {
		p := newPublishedRun()
		p.breakStream(10500*time.Millisecond, 13500*time.Millisecond, lost)
		p.actions = []ActionResult{actionAt("deploy", 10, 1)}
		e := p.judge(t).Actions[0].Effect
		require.Equal(t, want, [2]uint64{*e.Resumed, e.Missed}, "resumed and missed messages of 11, 12 and 13, which were sent during the outage")
		require.Equal(t, 1, e.Lost)
	}
}

// A record that lists only some of its late messages may still list all missed ones. Only unlisted missed messages make
// the counts lower bounds.
func TestActionReportsUnlistedFindings(t *testing.T) {
	t.Parallel()
	for lost, notes := range map[uint64]int{2: 0, 3: 1} {
		m := newReconnectRun(2)
		r := &m.Connections.Edit(0).Record
		r.Lost, r.Late, r.Unlisted = lost, 40, 36
		r.Findings = []ledger.Finding{{Kind: ledger.KindLost, From: 5, To: 6, Count: 2, At: 62 * time.Second}}
		require.Len(t, judgeSoak(m, nil, Evidence{Actions: []ActionResult{actionAt("deploy", 60, 5)}}).Actions[0].Effect.Notes, notes)
	}
}

// If an action ends a stream, the messages that were in flight at its start also belong to the action. Earlier losses,
// and losses of other streams, do not.
func TestMessagesInFlightAreLostByTheAction(t *testing.T) {
	t.Parallel()
	p := newPublishedRun()
	p.drop(10500*time.Millisecond, func(l *ledger.Ledger) { reopen(l, 10600*time.Millisecond, 12500*time.Millisecond, true) })
	p.lose(func(stream int, number uint64) bool {
		return stream == 0 && (number >= 10 && number <= 12 || number == 4) || stream == 1 && number == 9
	})
	p.actions = []ActionResult{actionAt("deploy", 10.2, .1)}
	v := p.judge(t)
	require.EqualValues(t, 5, v.Messages.Missed)
	require.EqualValues(t, 3, v.Actions[0].Effect.Missed, "messages 10, 11 and 12 must count: 10 was sent at 10 s, the others during the outage")
}

// A run whose action failed did not test the action, so a pass becomes invalid. A fail stays a fail.
func TestFailedActionMakesAPassInvalid(t *testing.T) {
	t.Parallel()
	failed := actionAt("deploy", 60, 1)
	failed.ExitCode, failed.Output = 3, "building\nno route to host"
	m, server := cleanRun()
	v := requireOutcome(t, Invalid, judgeSoak(m, server, Evidence{Actions: []ActionResult{actionAt("fine", 30, 1), failed}}))
	require.Equal(t, []string{"the action deploy (./deploy, at 60 s) failed: exit code 3; last line of its output: no route to host"}, v.Reasons)
	m, _ = cleanRun()
	m.Connections.Edit(0).Lost, m.Connections.Edit(0).Findings = 1, []ledger.Finding{{Kind: ledger.KindLost, From: 5, To: 5, Count: 1, At: 70 * time.Second}}
	v = requireOutcome(t, Fail, judgeSoak(m, nil, Evidence{Actions: []ActionResult{failed}}))
	require.Len(t, v.Reasons, 1)
	require.Contains(t, v.Warnings[len(v.Warnings)-1], "the action deploy")
}

func TestMostStreamsReconnectWithinTheLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		streams, slow int
		outage, limit float64
		want          Outcome
		actual        string
	}{
		{"no client is lost", 1000, 0, 0, 60, Pass, "no stream was lost"},
		{"all within the limit", 1000, 1000, 59, 60, Pass, "within 59 s; all within 59 s"},
		{"all at the limit", 50, 50, 60, 60, Pass, "within 60 s; all within 60 s"},
		{"one in a thousand may take longer", 1000, 1, 61, 60, Pass, "within 0 ms; all within 61 s"},
		{"two in a thousand may not", 1000, 2, 61, 60, Fail, "within 61 s; all within 61 s"},
		{"one in fifty may not", 50, 1, 61, 60, Fail, "within 61 s; all within 61 s"},
		{"a limit that the user set", 50, 1, 3, 2.5, Fail, "within 3 s; all within 3 s"},
		{"a plan without the setting", 50, 1, 61, 0, Fail, "within 61 s; all within 61 s"},
		{"no limit", 50, 50, 1000, -1, Pass, "within 16 min 40 s; all within 16 min 40 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newReconnectRun(c.streams)
			m.Plan.BackWithinS = c.limit
			for n := range c.slow {
				lose(m, n, 100, 100+c.outage)
			}
			v := requireOutcome(t, c.want, judgeSoak(m, nil, Evidence{}))
			if c.want == Fail {
				require.Regexp(t, `^d-0 was disconnected for .*; 99.9 % of the clients must reconnect within .* \(BACK_WITHIN\)$`, v.Reasons[0])
			}
			require.Equal(t, c.actual, check(t, v, "99.9 % of clients reconnected").Actual)
		})
	}
}

// One in a thousand clients may take longer, so a fault needs two clients whose delay the generator does not explain.
func TestGeneratorExplainsReconnectsOverTheLimit(t *testing.T) {
	t.Parallel()
	for n, want := range []Outcome{Pass, Pass, Invalid, Fail} {
		m := newReconnectRun(1000)
		m.Plan.BackWithinS = 60
		m.Runners[1].StallMaxUS = 2_000_000
		m.Connections.Edit(1).Runner = 1
		for client := range n {
			lose(m, client, 100, 161)
		}
		requireOutcome(t, want, judgeSoak(m, nil, Evidence{}), n, "slow clients, one of them on the runner that stalled")
	}
}

// The ordinal of a noop depends on when the stream opened, so findings with different ordinals form one group.
func TestSilenceOfSeveralStreamsIsOneGroup(t *testing.T) {
	t.Parallel()
	for kind, want := range map[ledger.Kind]string{
		ledger.KindUnsent: "2 clients of runner 1 missed 2 noops each: nothing arrived when due, at 22:14:20.000 UTC; first: d-0 missed 2 noops",
		ledger.KindTail:   "2 clients of runner 1 missed 2 noops each: nothing more arrived before the end of the stream, at 22:14:20.000 UTC; first: d-0 missed 2 noops",
	} {
		m := newReconnectRun(3)
		for n := range uint64(2) {
			r := &m.Connections.Edit(int(n)).Record
			r.Numbered, r.Received = false, r.Received-3-n
			f := ledger.Finding{Kind: kind, From: r.Received + 1, Count: 2, At: time.Minute}
			if r.Unsent = 2; kind == ledger.KindTail {
				r.Unsent, r.Tail = 0, 2
			}
			r.Findings = append(r.Findings, f)
		}
		v := requireOutcome(t, Fail, judgeSoak(m, nil, Evidence{}))
		require.Contains(t, v.Reasons[0], want)
	}
}

// Two runners log responses of 1 s each. The action at 100 s truncates two of them, one is refused, and one finishes
// late.
func TestResponsesAreAttributedToTheActionBeforeTheirEnd(t *testing.T) {
	t.Parallel()
	logs := []*shard.Responses{shard.NewResponses(), shard.NewResponses()}
	add := func(runner int, state ledger.ResponseState, from, to float64) {
		at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
		response := ledger.Response{Due: at(from), Ended: at(to), State: state}
		logs[runner].Add(&response, "id", "", time.UnixMilli(0).Add(at(to)), shard.ResponseLimits{})
	}
	for at := 50.; at < 99; at++ {
		add(int(at)%2, ledger.ResponseComplete, at, at+1)
	}
	add(0, ledger.ResponseTruncated, 10, 11) // long before the action
	add(0, ledger.ResponseTruncated, 99.5, 100.2)
	add(1, ledger.ResponseComplete, 99.75, 101.5)
	add(0, ledger.ResponseRefused, 100.5, 100.5)
	add(1, ledger.ResponseComplete, 101, 103.5)
	add(0, ledger.ResponseTruncated, 150, 151)
	add(0, ledger.ResponseAbandoned, 151, 152)
	add(1, ledger.ResponseTruncated, 230, 231) // belongs to the next action
	merged := shard.NewResponses()
	for _, log := range logs {
		require.NoError(t, merged.Merge(log))
	}
	actions := []Action{
		{ActionResult: ActionResult{StartedUnix: 220, EndedUnix: 220}}, {ActionResult: ActionResult{StartedUnix: 100, EndedUnix: 102}}, {},
	}
	responseEffects(actions, merged)
	deploy := actions[1].Responses
	require.Equal(t, map[ledger.ResponseState]int{ledger.ResponseTruncated: 2, ledger.ResponseRefused: 1}, deploy.Faulty)
	require.Equal(t, 2, deploy.InFlight)
	require.InDelta(t, 1.5, *deploy.Drained, .01)
	require.Equal(t, 2, deploy.Complete)
	require.Equal(t, 1, *deploy.Late)
	require.InDelta(t, 2, deploy.LateLimit, .01)
	require.InDelta(t, 211, deploy.Until, .01, "the effect must end a minute after the last faulty response")
	require.Empty(t, deploy.Notes)

	next := actions[0].Responses
	require.Equal(t, map[ledger.ResponseState]int{ledger.ResponseTruncated: 1}, next.Faulty)
	require.Zero(t, next.InFlight)
	require.Nil(t, next.Drained)
	require.Nil(t, next.Late, "Late must be nil if no response was complete in the minute before")
	require.Nil(t, actions[2].Responses)
}

func TestAbandonedResponsesAreJoinedWithTheModelLedger(t *testing.T) {
	t.Parallel()
	l := ModelLedger{
		"r-1": {{ID: "r-1", Sent: 7, DisconnectedUS: 1_020_000}},
		"r-2": {{ID: "r-2", Sent: 40}},
		"r-3": {{ID: "r-3", Sent: 1, DisconnectedUS: 1_000_500}, {ID: "r-3", Sent: 6, DisconnectedUS: 1_100_000}}, // the gateway repeated the request
	}
	var abandoned []shard.AbandonedResponse
	for _, id := range []string{"r-1", "r-2", "r-3", "other"} {
		abandoned = append(abandoned, shard.AbandonedResponse{ID: id, AtUS: 1_000_000, Chunks: 5})
	}
	c := cancellation(abandoned, l)
	require.EqualValues(t, []int64{3, 2, 2 + 35 + 2}, []int64{c.Checked, c.Cancelled, c.UnreceivedChunks})
	require.InDelta(t, 20, c.Delay.P50, 1)
	require.InDelta(t, 100, c.Delay.Max, 1)
	require.Nil(t, cancellation(abandoned, nil))
}
