package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
)

var wordsOfNoops = WordsOf(&shard.Merged{Service: shard.ServiceOf(service.Noop(time.Second))})

// A service that names its noops was said to be silent, and nothing more.
func TestWhatCameInsteadIsNamed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)
	tail := ledger.Finding{Kind: ledger.KindTail, Count: 12, From: 1, To: 12}
	named := ledger.Record{ID: "d-1", Others: []ledger.EventCount{{Name: "noop", Count: 12}}}
	require.Equal(t, `d-1 missed noops 1 to 12: nothing arrived before the stream closed at 15:04:05.000 UTC; other events arrived: 12 named "noop", which message.event of the description does not match`,
		wordsOfNoops.Sentence(&shard.Connection{Record: named}, tail, at))
	few := ledger.Record{ID: "d-1", Others: []ledger.EventCount{{Name: "news", Count: 2}}}
	require.NotContains(t, wordsOfNoops.Sentence(&shard.Connection{Record: few}, tail, at), "news", "two events took the place of no twelve noops")
}

// The page once had a red tile about a differing server's count, next to a green check with the text of a red one.
func TestAServerCountThatConfirmsAFault(t *testing.T) {
	t.Parallel()
	m, server := clean()
	c := m.Connections.Edit(1)
	c.Received--
	c.Lost++
	c.Findings = append(c.Findings, ledger.Finding{Kind: ledger.KindLost, From: 7, To: 7, Count: 1})
	v := judgeSoak(m, server, Evidence{})
	require.Equal(t, Fail, v.Verdict)
	require.False(t, v.Server.Agrees)
	require.True(t, v.Server.Confirms)
	count := check(t, v, "server's own count")
	require.True(t, count.Pass)
	require.Equal(t, "agrees, but for faults found", count.Limit)
	require.Equal(t, "differs on 1 stream, where faults were found", count.Actual)

	m, server = clean()
	v = judgeSoak(m, server, Evidence{})
	require.False(t, v.Server.Confirms)
	require.Equal(t, "agrees", check(t, v, "server's own count").Actual)
}
