package verdict

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

const (
	inBurstsOf40 = "noops arrive in bursts of 40: the service or a proxy buffers compressed data (gzip); flush after each message (nginx: proxy_buffering off), or do not compress event streams"
	oneByOne     = "one-by-one delivery of noops compressed with gzip"
)

// Bursts are attributed to compression if they contain most messages. A few bursts, as after a stall, are not.
func TestCompressionDelaysMessages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		coding  shard.Coding
		failed  []string
		warning []string
	}{
		"one by one": {shard.Coding{Messages: 717}, nil, nil},
		"a stall":    {shard.Coding{Messages: 717, Bursts: 3, BurstMessages: 30}, nil, nil},
		"bursts":     {shard.Coding{Messages: 717, Bursts: 17, BurstMessages: 680}, []string{oneByOne}, []string{inBurstsOf40}},
	} {
		m, server := cleanRun()
		tt.coding.Name, tt.coding.Streams = "gzip", 3
		m.Codings = []shard.Coding{tt.coding}
		v := requireOutcome(t, Pass, judgeSoak(m, server, Evidence{}), name)
		require.Equal(t, tt.failed, failedChecks(v), name)
		require.Equal(t, tt.warning, v.Warnings, name)
		require.Equal(t, "gzip on 3 streams", v.CompressionText())
	}
}

func TestCompressionIsTheFirstReason(t *testing.T) {
	t.Parallel()
	m, server := cleanRun()
	m.Plan.MaxLate = 0
	m.Codings = []shard.Coding{{Name: "gzip", Streams: 3, Messages: 717, Bursts: 17, BurstMessages: 680}}
	addFault(&m.Connections.Edit(0).Record, ledger.KindLate, 7)
	v := requireOutcome(t, Fail, judgeSoak(m, server, Evidence{}))
	require.Equal(t, inBurstsOf40, v.Reasons[0])

	m, _ = cleanRun()
	m.Codings = []shard.Coding{{Name: "br", Streams: 3}}
	for i := range connections {
		r := &m.Connections.Edit(i).Record
		r.Counts = ledger.Counts{Tail: noopsEach}
		addFault(r, ledger.KindDropped, 1)
	}
	v = requireOutcome(t, Fail, judgeSoak(m, nil, Evidence{}))
	require.Contains(t, v.Reasons[0], "no noop arrived on the streams compressed with br: the service or a proxy buffers compressed data")
}

// An external publisher may publish several messages at once.
func TestBurstsOfOtherPublishers(t *testing.T) {
	t.Parallel()
	m, _ := cleanRun()
	m.Plan.Service, m.Service = "x", shard.Service{Name: "x", CountBasis: shard.CountByNumber}
	m.Codings = []shard.Coding{{Name: "gzip", Streams: 3, Messages: 717, Bursts: 17, BurstMessages: 680}}
	require.NotContains(t, failedChecks(judgeSoak(m, nil, Evidence{})), "one-by-one delivery of messages compressed with gzip")
}

// A proxy may delay the headers together with the body. Only the request then shows that compression is in use.
func TestDelayedHeaders(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]bool{"connect_timeout": true, ledger.ReasonNoAnswer: true, "status 503": false} {
		for _, coding := range []string{"gzip", ""} {
			m, _ := cleanRun()
			m.Plan.AcceptEncoding = coding
			r := &m.Connections.Edit(0).Record
			r.State, r.Streams, r.Counts, r.Reason = ledger.Refused, 0, ledger.Counts{}, reason
			r.Refusals = []ledger.Refusal{{Reason: reason, Count: 1}}
			addFault(r, ledger.KindRefused, 1)
			v := requireOutcome(t, Fail, judgeSoak(m, nil, Evidence{}))
			delayed := strings.Contains(v.Reasons[0], "streams that requested compression (ACCEPT_ENCODING=gzip) received no response")
			require.Equal(t, want && coding != "", delayed, "%s %v", reason, v.Reasons)
		}
	}
}

// If messages are due one by one and arrive together, the warning names a buffer, with the header Server if there is
// one.
func TestBuffersAreNamed(t *testing.T) {
	t.Parallel()
	for together, want := range map[int][]string{
		3: nil,
		9: {`90.0 % of the noops arrived together with the previous one, after a silence with a median of 75 s and a maximum of 75 s: something between the service and the client buffers them, such as nginx with proxy_buffering on (header Server: "nginx/1.22.1")`},
	} {
		m, server := cleanRun()
		m.Bursts = shard.NewBursts()
		m.Bursts.AddServer("nginx/1.22.1", 2)
		var before uint32
		for range 10 - together {
			m.Bursts.Add(75*time.Second, &before)
		}
		for range together {
			m.Bursts.Add(time.Microsecond, &before)
		}
		v := requireOutcome(t, Pass, judgeSoak(m, server, Evidence{}))
		require.InDelta(t, float64(together)/10, v.ArrivedTogether, 1e-9)
		require.Equal(t, want, v.Warnings)
	}
}
