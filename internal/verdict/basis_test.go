package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUndetectableLosses(t *testing.T) {
	t.Parallel()
	t.Run("with a server's ledger there are none", func(t *testing.T) {
		t.Parallel()
		m, server := cleanRun()
		for i := range m.Connections.Len() {
			m.Connections.Edit(i).Undetectable = 1 // one was due at the end, and the server's ledger has the last number
		}
		v := requireOutcome(t, Pass, judgeSoak(m, server, Evidence{}))
		require.Equal(t, Basis{By: ByServer, Why: []string{}}, v.Evidence)
	})
	t.Run("a pass by interval states their number", func(t *testing.T) {
		t.Parallel()
		m, _ := cleanRun()
		for i := range m.Connections.Len() {
			m.Connections.Edit(i).Numbered, m.Connections.Edit(i).Last, m.Connections.Edit(i).Undetectable = false, 0, 2
		}
		v := requireOutcome(t, Pass, judgeSoak(m, nil, Evidence{}))
		require.Equal(t, ByClock, v.Evidence.By)
		require.EqualValues(t, 6, v.Evidence.Undetectable)
		require.Len(t, v.Evidence.Why, 1)
		require.Equal(t, "no noop is known to be missing; up to 6 of 717 could be undetectable losses", v.Reasons[0])

		m, _ = cleanRun()
		for i := range m.Connections.Len() {
			m.Connections.Edit(i).Numbered, m.Connections.Edit(i).Last, m.Connections.Edit(i).Undetectable = false, 0, 2
		}
		m.Plan.MaxHidden = 5
		v = requireOutcome(t, Invalid, judgeSoak(m, nil, Evidence{}))
		require.Equal(t, []string{"undetectable losses"}, failedChecks(v))
		require.Contains(t, v.Reasons[0], "6 of 717 noops could be undetectable losses (MAX_HIDDEN allows 5): 3 streams had no ids that count")
	})
	t.Run("without a server's ledger a noop that was due at the end is one", func(t *testing.T) {
		t.Parallel()
		m, _ := cleanRun()
		m.Connections.Edit(1).Undetectable = 1
		v := requireOutcome(t, Invalid, judgeSoak(m, nil, Evidence{}))
		require.Equal(t, ByNumbers, v.Evidence.By)
		m.Plan.MaxHidden = 1
		require.Equal(t, Pass, judgeSoak(m, nil, Evidence{}).Verdict)
	})
	t.Run("a duplicate may replace a lost noop in the server's count", func(t *testing.T) {
		t.Parallel()
		m, server := cleanRun()
		m.Connections.Edit(1).Numbered, m.Connections.Edit(1).Last = false, 0
		m.Connections.Edit(1).Undetectable, m.Connections.Edit(1).PossibleCopies = 3, 2
		v := requireOutcome(t, Pass, judgeSoak(m, server, Evidence{}))
		require.Equal(t, ByClock, v.Evidence.By)
		require.EqualValues(t, 2, v.Evidence.Undetectable)
		m.Plan.MaxHidden = 0
		require.Equal(t, Invalid, judgeSoak(m, server, Evidence{}).Verdict)
	})
}
