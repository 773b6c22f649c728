package verdict

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// An inconclusive check does not hide a fault: a run with a lost noop fails, even if a runner stalled.
func TestInconclusiveCheckDoesNotHideFaults(t *testing.T) {
	t.Parallel()
	late := func(m *shard.Merged) {
		m.Plan.MaxLate, m.Runners[0].StallMaxUS = 0, 8e6
		addFault(&m.Connections.Edit(0).Record, ledger.KindLate, 1)
	}
	outage := func(m *shard.Merged) {
		m.Plan.Reconnect = true
		m.Runners[0].StallMaxUS = 10e6
		r := &m.Connections.Edit(0).Record
		r.Longest = ledger.Outage{From: time.Minute, To: time.Minute + 40*time.Second}
	}
	short := func(m *shard.Merged) {
		m.Runners[0].StallMaxUS = 3600e6
		r := &m.Connections.Edit(0).Record
		r.OpenTime, r.StreamTime, r.OutageTime = 10*time.Second, 10*time.Second, 3585*time.Second
	}
	undetectable := func(m *shard.Merged) { m.Connections.Edit(0).Undetectable, m.Plan.MaxHidden = 1, 0 }
	for name, doubt := range map[string]func(*shard.Merged){
		"late": late, "outage": outage, "short": short, "undetectable": undetectable, "interval": doubleInterval,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, _ := cleanRun()
			doubt(m)
			v := requireOutcome(t, Invalid, judgeSoak(m, nil, Evidence{}))
			inconclusive := v.Reasons
			require.NotEmpty(t, inconclusive)

			m, _ = cleanRun()
			doubt(m)
			addFault(&m.Connections.Edit(1).Record, ledger.KindLost, 1)
			v = requireOutcome(t, Fail, judgeSoak(m, nil, Evidence{}))
			require.Equal(t, []string{"d-1 missed noop 7: the number was skipped (noticed at 22:14:49.000 UTC)"}, v.Reasons)
			for _, sentence := range inconclusive {
				require.Contains(t, strings.Join(v.Warnings, "\n"), sentence)
			}

			m.Problems = []string{"runner 2 of 2 left no shard"}
			requireOutcome(t, Invalid, judgeSoak(m, nil, Evidence{}), "incomplete data outranks a fault")
		})
	}
}

// doubleInterval makes the service send a noop every 30 s, not every 15 s.
func doubleInterval(m *shard.Merged) {
	for i := range m.Connections.Len() {
		m.Connections.Edit(i).Interval = 30 * time.Second
	}
}

// If the interval of the service differs from the plan, faults that depend on the interval do not count, and all others
// do.
func TestDifferentIntervalExplainsOnlyFaultsByInterval(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(r *ledger.Record, e *ServerEntry, f *Evidence)
		want Outcome
	}{
		{"no fault", func(*ledger.Record, *ServerEntry, *Evidence) {}, Invalid},
		{"missed by the clock", func(r *ledger.Record, _ *ServerEntry, _ *Evidence) { r.Numbered, r.Unsent = false, 9 }, Invalid},
		{"missed at the end by the clock", func(r *ledger.Record, _ *ServerEntry, _ *Evidence) { r.Tail = 9 }, Invalid},
		{"duplicated by the clock", func(r *ledger.Record, _ *ServerEntry, _ *Evidence) {
			r.Numbered, r.Received, r.Duplicated = false, noopsEach-100, 100
		}, Invalid},
		{"too few", func(r *ledger.Record, e *ServerEntry, _ *Evidence) {
			r.Received, r.Last, e.Last, e.Sent = 100, 100, 100, 100
		}, Invalid},
		{"silent for too long", func(r *ledger.Record, _ *ServerEntry, _ *Evidence) { r.State, r.Reason = ledger.Dropped, "idle" }, Invalid},
		{"ended at the next noop", func(r *ledger.Record, _ *ServerEntry, _ *Evidence) { r.State, r.Reason = ledger.Unfinished, "client" }, Invalid},
		{"a number lost", func(r *ledger.Record, _ *ServerEntry, _ *Evidence) { r.Received, r.Lost = noopsEach-1, 1 }, Fail},
		{"lost according to the server's ledger", func(_ *ledger.Record, e *ServerEntry, _ *Evidence) { e.Last++; e.Sent++ }, Fail},
		{"lost according to the server's ledger, without numbers", func(r *ledger.Record, e *ServerEntry, _ *Evidence) { r.Numbered = false; e.Sent++ }, Fail},
		{"a number twice", func(r *ledger.Record, _ *ServerEntry, _ *Evidence) { r.Duplicated = 1 }, Fail},
		{"a number out of order", func(r *ledger.Record, _ *ServerEntry, _ *Evidence) { r.Reordered = 1 }, Fail},
		{"corrupted", func(r *ledger.Record, _ *ServerEntry, _ *Evidence) { r.Received, r.Corrupted = noopsEach-1, 1 }, Fail},
		{"dropped", func(r *ledger.Record, _ *ServerEntry, _ *Evidence) { r.State, r.Reason = ledger.Dropped, "reset" }, Fail},
		{"broken at its end", func(r *ledger.Record, _ *ServerEntry, _ *Evidence) { r.State, r.Reason = ledger.Unfinished, "reset" }, Fail},
		{"refused", func(r *ledger.Record, _ *ServerEntry, _ *Evidence) {
			*r = ledger.Record{ID: r.ID, State: ledger.Refused, Attempts: 1}
		}, Fail},
		{"refused, because the generator had no port left", func(r *ledger.Record, _ *ServerEntry, _ *Evidence) {
			*r = ledger.Record{ID: r.ID, State: ledger.Refused, Attempts: 1, Refusals: []ledger.Refusal{{Reason: ledger.ReasonNoPort, Count: 1}}}
		}, Invalid},
		{"server's own count", func(_ *ledger.Record, e *ServerEntry, _ *Evidence) { e.Sent-- }, Fail},
		{"the target died", func(_ *ledger.Record, _ *ServerEntry, f *Evidence) { f.Failures = []TargetFailure{{Text: "it died"}} }, Fail},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, server := cleanRun()
			doubleInterval(m)
			e, f := server["d-0"], Evidence{}
			c.edit(&m.Connections.Edit(0).Record, &e, &f)
			server["d-0"] = e
			v := requireOutcome(t, c.want, judgeSoak(m, server, f))
			sentences := v.Reasons
			if c.want == Fail {
				sentences = v.Warnings
			}
			require.Contains(t, strings.Join(sentences, "\n"), "set NOOP_INTERVAL=30")
			require.Equal(t, v, judgeSoak(m, server, f), "a second judgment must give the same verdict")
		})
	}
}
