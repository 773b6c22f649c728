package results

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/machine"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// What Prometheus saw of the machines is evidence: it is read again by a merge, its absence is noticed, and what is no
// such file makes a run invalid and nothing worse.
func TestMachinesThatPrometheusWatched(t *testing.T) {
	t.Parallel()
	w := machine.Follow("stack", time.Second)
	w.Add(time.Unix(100, 0), machine.Reading{"pps_allowance_exceeded": 1})
	w.Add(time.Unix(105, 0), machine.Reading{"pps_allowance_exceeded": 15})
	watched := func() Dir {
		d := begun(t)
		require.NoError(t, d.WriteJSON(MachinesFile, []*machine.Record{w.Record()}))
		require.NoError(t, d.Seal(0))
		return d
	}
	v, _, err := watched().Judge()
	require.NoError(t, err)
	require.Equal(t, verdict.Fail, v.Verdict, "for another reason")
	require.Contains(t, strings.Join(v.Warnings, "\n"), "AWS held back or dropped 14 packets of stack between 00:01:40 and 00:01:45 UTC: pps_allowance_exceeded")
	require.Len(t, v.Machines, 1)

	for name, c := range map[string]struct {
		text string // "": the file is removed
		want string
	}{
		"none":    {"", "machines.json is missing"},
		"half":    {"[", "machines.json"},
		"null":    {"[null]", "a machine that is none"},
		"hostile": {`[{"counters":[{"name":"steal","grown":-1}]}]`, "a counter steal of -1"},
	} {
		d := watched()
		put(t, d, MachinesFile, c.text)
		if c.text == "" {
			require.NoError(t, os.Remove(d.Path(MachinesFile)))
		}
		v, _, err := d.Judge()
		require.NoError(t, err, name)
		require.Equal(t, verdict.Invalid, v.Verdict, name)
		require.Contains(t, strings.Join(v.Reasons, "\n"), c.want, name)
	}
}
