package verdict

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// Dropped packets do not explain a script check that failed, but also passed once for every connection.
func TestDroppedPacketsDoNotExplainAPassedCheck(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]float64{"none were dropped": 0, "some were dropped": 14} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := cleanRunOnAWS()
			if by > 0 {
				addIncrease(m.Runners[0].Machine, conntrack, by)
				makeSilent(&m.Connections.Edit(0).Record, dropsAt+20, "idle")
				server["d-0"] = ServerEntry{ID: "d-0", First: 1, Last: noopsEach - 2, Sent: noopsEach - 2}
			}
			m.Checks[0] = shard.Check{Name: m.Checks[0].Name, Passes: int64(m.Plan.Connections), Fails: 1}
			v := requireOutcome(t, Fail, judgeSoak(m, server, Evidence{}))
			c := check(t, v, "script checks")
			require.NotEqual(t, SeverityInconclusive, c.Severity)
			require.Contains(t, strings.Join(v.Reasons, "\n"), `failed 1 of 4 times`)
		})
	}
}
