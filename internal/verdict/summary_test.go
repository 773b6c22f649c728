package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*shard.Merged, *Evidence)
		want string
	}{
		"a pass": {func(*shard.Merged, *Evidence) {}, "PASS: 3 of 3 streams held, 717 of 717 messages received"},
		"losses that could not have been detected": {func(m *shard.Merged, _ *Evidence) {
			m.Plan.MaxHidden = 2
			m.Connections.Edit(0).Hidden = 2
		}, "PASS: 3 of 3 streams held, 717 of 717 messages received; up to 2 losses could not have been detected"},
		"losses and a dropped stream": {func(m *shard.Merged, _ *Evidence) {
			r := &m.Connections.Edit(0).Record
			r.Received, r.Lost = noopsEach-2, 2
			find(r, ledger.KindLost, 2)
			r = &m.Connections.Edit(1).Record
			r.State, r.Reason = ledger.Dropped, "reset"
			find(r, ledger.KindDropped, 0)
			m.Checks[0].Passes, m.Checks[0].Fails = 1, 2
		}, "FAIL: 1 stream ended early, 2 of 717 messages lost on 1 of 3 clients; first at 22:14:49 UTC"},
		"the cause comes first": {func(m *shard.Merged, e *Evidence) {
			e.Failures = []Failure{{Text: "the backend died at 06:54:10 UTC (signal: killed) and was restarted"}}
			m.Connections.Edit(1).State, m.Connections.Edit(1).Reason = ledger.Dropped, "reset"
		}, "FAIL: the backend died at 06:54:10 UTC (signal: killed) and was restarted, 1 stream ended early"},
		"a missing shard": {func(m *shard.Merged, _ *Evidence) {
			m.Problems = []string{"runner 2 of 2 left no shard"}
		}, "INVALID: runner 2 of 2 left no shard"},
		"a run that was stopped": {func(m *shard.Merged, _ *Evidence) {
			for i := range m.Runners {
				r := &m.Runners[i]
				r.State, r.EndedUS = shard.Interrupted, r.StartedUS+(10*time.Second).Microseconds()
			}
			m.Problems = []string{"the run was stopped by a signal before its end"}
		}, "INVALID: stopped after 11 s of 1 h; until then 717 of 717 messages arrived"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, _ := clean()
			var e Evidence
			c.edit(m, &e)
			require.Equal(t, c.want, judgeSoak(m, nil, e).Summary())
		})
	}
	require.Equal(t, "INVALID: there is no verdict", (&Verdict{Verdict: Invalid, Reasons: []string{"there is no verdict"}}).Summary())
}
