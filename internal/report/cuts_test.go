package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

func TestCutsHaveAChart(t *testing.T) {
	t.Parallel()
	r := madeUp(20, 600)
	charts := func() (ids []string) {
		for _, c := range newSubject(r).timelines().Charts {
			ids = append(ids, c.ID)
		}
		return ids
	}
	require.NotContains(t, charts(), "cuts", "a run without cuts has none")
	cut := func(at time.Duration, behind, next, doubled uint64) ledger.Cut {
		return ledger.Cut{Kind: "fin", At: at, Behind: behind, Lost: true, Back: at + time.Second, Asked: true, First: at + 2*time.Second, Next: next, Doubled: doubled}
	}
	r.Merged.Connections.Edit(3).Cuts = &ledger.Cuts{List: []ledger.Cut{cut(61*time.Second, 4, 6, 0), cut(64*time.Second, 6, 7, 0), cut(70*time.Second, 7, 7, 1)}}
	r.Merged.Connections.Edit(9).Cuts = &ledger.Cuts{List: []ledger.Cut{cut(62*time.Second, 4, 5, 0), cut(24*time.Hour, 5, 6, 0)}}
	require.Contains(t, charts(), "cuts")
	var out Section
	newSubject(r).cutsOverTime(&out)
	require.Len(t, out.Charts, 1)
	made, broken := out.Charts[0].Series[0].Values, out.Charts[0].Series[1].Values
	require.Equal(t, []float64{0, 3, 0, 1, 0}, []float64(made[11:16]), "from 55 s on, each 5 s")
	require.Equal(t, []float64{0, 1, 0, 1, 0}, []float64(broken[11:16]))
}
