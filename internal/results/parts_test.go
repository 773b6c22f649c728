package results

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newParts returns a run of two machines, each with its own shard and its own part of the server's ledger.
func newParts(t *testing.T) Dir {
	t.Helper()
	d := newPass(t)
	require.NoError(t, os.Remove(d.Path(RunFile)))
	for i := 1; i <= 2; i++ {
		require.NoError(t, d.WriteJSON(RunName(i), Run{}))
	}
	// Each part reads the ledger after the end of its own streams, so entries of other streams are missing or
	// incomplete.
	put(t, d, LedgerName(1), entry(0, 15)+entry(1, 7))
	put(t, d, LedgerName(2), entry(1, 15)+entry(0, 3))
	return d
}

// entry returns an entry of the server's ledger.
func entry(connection, last int) string {
	return fmt.Sprintf(`{"id":"d-%d","first":1,"last":%d,"sent":%[2]d}`+"\n", connection, last)
}

func TestPartsMakeOneVerdict(t *testing.T) {
	t.Parallel()
	v := judge(t, newParts(t), verdict.Pass, "")
	require.True(t, v.Server.Known)
	require.EqualValues(t, 30, v.Server.Sent)
}

func TestServerLedgerOfEachPart(t *testing.T) {
	t.Parallel()
	d := newParts(t)
	put(t, d, LedgerName(2), entry(1, 16)+entry(0, 15))
	require.Contains(t, judge(t, d, verdict.Fail, "").Reasons[0], "d-1 missed noop 16")
}

func TestPartsNeedAllServerLedgers(t *testing.T) {
	t.Parallel()
	d := newParts(t)
	require.NoError(t, os.Remove(d.Path(LedgerName(2))))
	judge(t, d, verdict.Invalid, "1 of 2 runners stored the backend's ledger, so the last noops cannot be checked")
}

func TestWarningsNameTheirPart(t *testing.T) {
	t.Parallel()
	d := newParts(t)
	require.NoError(t, d.WriteJSON(RunName(2), Run{Problems: []string{"a problem"}, Warnings: []string{"a warning"}}))
	v := judge(t, d, verdict.Invalid, "runner 2: a problem")
	require.Contains(t, v.Warnings, "runner 2: a warning")
	put(t, d, RunName(1), "[")
	judge(t, d, verdict.Invalid, "run-1.json")
}

// The machine counters from Prometheus are evidence: a merge reads them again and reports a missing file. A damaged
// file makes a run invalid.
func TestMachinesFromPrometheus(t *testing.T) {
	t.Parallel()
	w := machine.Follow("stack", time.Second)
	w.Add(time.Unix(100, 0), machine.Reading{"pps_allowance_exceeded": 1})
	w.Add(time.Unix(105, 0), machine.Reading{"pps_allowance_exceeded": 15})
	newRun := func() Dir {
		d := newUnfinished(t)
		require.NoError(t, d.WriteJSON(MachinesFile, []*machine.Record{w.Record()}))
		require.NoError(t, d.Seal(0))
		return d
	}
	v := judge(t, newRun(), verdict.Fail, "")
	require.Contains(t, strings.Join(v.Warnings, "\n"), "AWS held back or dropped 14 packets of stack between 00:01:40 and 00:01:45 UTC: pps_allowance_exceeded")
	require.Len(t, v.Machines, 1)

	for name, c := range map[string]struct {
		text string // "": the file is removed
		want string
	}{
		"missing":   {"", "machines.json is missing"},
		"truncated": {"[", "machines.json"},
		"null":      {"[null]", "an empty machine"},
		"hostile":   {`[{"counters":[{"name":"steal","increase":-1}]}]`, "impossible counter steal of the machine: -1"},
	} {
		t.Log(name)
		d := newRun()
		put(t, d, MachinesFile, c.text)
		if c.text == "" {
			require.NoError(t, os.Remove(d.Path(MachinesFile)))
		}
		judge(t, d, verdict.Invalid, c.want)
	}
}
