package results

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// inParts is a run of two machines, each with its own shard and its own part of the server's ledger.
func inParts(t *testing.T) Dir {
	t.Helper()
	d := written(t)
	require.NoError(t, os.Remove(d.Path(RunFile)))
	for i := 1; i <= 2; i++ {
		require.NoError(t, d.WriteJSON(RunName(i), Run{}))
	}
	// Each asked when its own streams were over; those of the other were not, or not yet.
	put(t, d, LedgerName(1), entry(0, 15)+entry(1, 7))
	put(t, d, LedgerName(2), entry(1, 15)+entry(0, 3))
	return d
}

func entry(connection, last int) string {
	return fmt.Sprintf(`{"id":"d-%d","first":1,"last":%d,"sent":%[2]d}`+"\n", connection, last)
}

func TestPartsMakeOneVerdict(t *testing.T) {
	t.Parallel()
	v, _, err := inParts(t).Judge()
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, v.Verdict, "%q", v.Reasons)
	require.True(t, v.Server.Known)
	require.EqualValues(t, 30, v.Server.Sent)
}

func TestThePartThatHeldAStreamSaysWhatWasSentOnIt(t *testing.T) {
	t.Parallel()
	d := inParts(t)
	put(t, d, LedgerName(2), entry(1, 16)+entry(0, 15))
	v, _, err := d.Judge()
	require.NoError(t, err)
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Contains(t, v.Reasons[0], "d-1 missed noop 16")
}

func TestPartsNeedTheServerLedgersOfAll(t *testing.T) {
	t.Parallel()
	d := inParts(t)
	require.NoError(t, os.Remove(d.Path(LedgerName(2))))
	v, _, err := d.Judge()
	require.NoError(t, err)
	require.Equal(t, verdict.Invalid, v.Verdict)
	require.Contains(t, v.Reasons, "1 of 2 runners brought the backend's ledger, so the last noops cannot be checked")
}

func TestWhatAPartSawIsSaidInItsName(t *testing.T) {
	t.Parallel()
	d := inParts(t)
	require.NoError(t, d.WriteJSON(RunName(2), Run{Problems: []string{"it was cold"}, Warnings: []string{"mind the step"}}))
	v, _, err := d.Judge()
	require.NoError(t, err)
	require.Equal(t, verdict.Invalid, v.Verdict)
	require.Contains(t, v.Reasons, "runner 2: it was cold")
	require.Contains(t, v.Warnings, "runner 2: mind the step")
	put(t, d, RunName(1), "[")
	v, _, err = d.Judge()
	require.NoError(t, err)
	require.Equal(t, verdict.Invalid, v.Verdict)
	require.Contains(t, strings.Join(v.Reasons, "\n"), "run-1.json")
}
