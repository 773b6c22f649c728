package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestWindows(t *testing.T) {
	t.Parallel()
	const start = 1_700_000_000
	m, server := cleanRun()
	for at := range int64(720) { // an hour
		slow := shard.NewHistogram()
		slow.Record(time.Duration(1+at/240) * time.Millisecond)
		b := shard.Bucket{Unix: start + 5*at, Open: 3, Noops: 1, Lateness: slow.Pack()}
		b.CPUPercent = float64(at / 240)
		switch at {
		case 0:
			b.Opened = 3
		case 250:
			b.Faults, b.Late = 2, 1
		case 719:
			b.Open, b.Closed = 0, 3
		}
		m.Series = append(m.Series, b)
	}
	assert.Empty(t, judgeSoak(m, server, Evidence{}).Windows, "a run that is not longer than a window must have none")

	m.Plan.WindowS = 1200
	c := m.Connections.Edit(0)
	c.Lost, c.Received = 4, c.Received-4
	c.Findings = []ledger.Finding{{Kind: ledger.KindLost, From: 9, To: 12, Count: 4, At: 2500 * time.Second, Source: ledger.SourcePublisher}}
	v := judgeSoak(m, server, Evidence{Samples: []resources.Sample{{Unix: start + 1300, BackendRSS: 7}, {Unix: start + 9999, BackendRSS: 8}}})
	require.Len(t, v.Windows, 3)
	assert.Equal(t, Window{StartUnix: start, Seconds: 1200, Open: 3, Opened: 3, Messages: 240, Lateness: v.Windows[0].Lateness}, v.Windows[0])
	assert.InDelta(t, 2, v.Windows[1].Lateness, .1)
	assert.Equal(t, 2, v.Windows[1].Faults, "without findings, the faults that the runners counted must be in the window")
	assert.Equal(t, 1, v.Windows[1].Late)
	assert.EqualValues(t, 7, v.Windows[1].Memory)
	assert.InDelta(t, 1, v.Windows[1].RunnerCPU, .01, "the CPU usage of a window must be the average of its buckets")
	assert.Equal(t, 4, v.Windows[2].Faults, "each message of a finding must count")
	assert.Equal(t, 3, v.Windows[2].Closed)
	assert.EqualValues(t, 8, v.Windows[2].Memory, "a sample after the end must be in the last window")
	assert.Equal(t, "the worst of 3 windows of 20 min began at 2023-11-14 22:53:20 UTC: 4 messages faulty, 0 late", v.Warnings[0])

	c.Misrouted = 1
	c.Findings = append(c.Findings, ledger.Finding{Kind: ledger.KindMisrouted, At: 2600 * time.Second})
	assert.Equal(t, 5, judgeSoak(m, server, Evidence{}).Windows[2].Faults, "a message of another topic must count as a fault")

	m.Plan.WindowS = 1000
	v = judgeSoak(m, server, Evidence{})
	require.Len(t, v.Windows, 4)
	assert.InDelta(t, 600, v.Windows[3].Seconds, 0, "the last window must be shorter")
	messages := 0
	for _, w := range v.Windows {
		messages += w.Messages
	}
	assert.Equal(t, 720, messages, "each bucket must be in one window")
}
