package verdict

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

const (
	inBurstsOf40 = "noops arrive in bursts of 40: the service or a proxy buffers compressed data (gzip); flush after each message (nginx: proxy_buffering off), or do not compress event streams"
	oneByOne     = "noops in gzip delivered one by one"
)

// Messages of which most arrive in bursts are attributed to the compressor. One burst, as after a stall, is not.
func TestCompressionDelaysMessages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		coding  shard.Coding
		failed  []string
		warning []string
	}{
		"one by one": {shard.Coding{Messages: 717}, nil, nil},
		"a stall":    {shard.Coding{Messages: 717, Bursts: 3, Together: 30}, nil, nil},
		"bursts":     {shard.Coding{Messages: 717, Bursts: 17, Together: 680}, []string{oneByOne}, []string{inBurstsOf40}},
	} {
		m, server := clean()
		tt.coding.Name, tt.coding.Streams = "gzip", 3
		m.Codings = []shard.Coding{tt.coding}
		v := judgeSoak(m, server, Evidence{})
		require.Equal(t, Pass, v.Verdict, name)
		require.Equal(t, tt.failed, failedChecks(v), name)
		require.Equal(t, tt.warning, v.Warnings, name)
		require.Equal(t, "gzip on 3 streams", v.Compressed())
	}
}

// Where that made noops late, or none came, it is the first reason of what failed.
func TestCompressionIsTheFirstReason(t *testing.T) {
	t.Parallel()
	m, server := clean()
	m.Plan.MaxLate = 0
	m.Codings = []shard.Coding{{Name: "gzip", Streams: 3, Messages: 717, Bursts: 17, Together: 680}}
	r := &m.Connections.Edit(0).Record
	r.Late = 7
	find(r, ledger.KindLate, 7)
	v := judgeSoak(m, server, Evidence{})
	require.Equal(t, Fail, v.Verdict)
	require.Equal(t, inBurstsOf40, v.Reasons[0])

	m, _ = clean()
	m.Codings = []shard.Coding{{Name: "br", Streams: 3}}
	for i := range connections {
		r := &m.Connections.Edit(i).Record
		r.State, r.Counts = ledger.Dropped, ledger.Counts{Tail: noopsEach}
		find(r, ledger.KindDropped, 1)
	}
	v = judgeSoak(m, nil, Evidence{})
	require.Equal(t, Fail, v.Verdict)
	require.Contains(t, v.Reasons[0], "no noop arrived on the streams in br: the service or a proxy buffers compressed data")
}

// A publisher of its own may publish several messages at once.
func TestBurstsOfOtherPublishers(t *testing.T) {
	t.Parallel()
	m, _ := clean()
	m.Plan.Service, m.Service = "x", shard.Service{Name: "x", Counts: shard.CountsNumbers}
	m.Codings = []shard.Coding{{Name: "gzip", Streams: 3, Messages: 717, Bursts: 17, Together: 680}}
	require.NotContains(t, failedChecks(judgeSoak(m, nil, Evidence{})), "messages in gzip come one by one")
}

// A proxy may delay the headers with the rest: then only the request shows that there is compression.
func TestDelayedHeaders(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]bool{"connect_timeout": true, ledger.ReasonNoAnswer: true, "status 503": false} {
		for _, asked := range []string{"gzip", ""} {
			m, _ := clean()
			m.Plan.AcceptEncoding = asked
			r := &m.Connections.Edit(0).Record
			r.State, r.Streams, r.Counts, r.Reason = ledger.Refused, 0, ledger.Counts{}, reason
			r.Refusals = []ledger.Refusal{{Reason: reason, Count: 1}}
			find(r, ledger.KindRefused, 1)
			v := judgeSoak(m, nil, Evidence{})
			require.Equal(t, Fail, v.Verdict)
			held := strings.Contains(v.Reasons[0], "streams that requested compression (ACCEPT_ENCODING=gzip) got no response")
			require.Equal(t, want && asked != "", held, "%s %v", reason, v.Reasons)
		}
	}
}
