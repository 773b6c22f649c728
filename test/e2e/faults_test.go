//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Each known fault goes in alone, on one connection of many; the verdict has to be fail, the
// count exact, and the reasons have to name fault, device and time. One noop out of a whole
// run is enough.
func TestFaultsAreFoundExactly(t *testing.T) {
	t.Parallel()
	type counts struct {
		missed, duplicated, reordered, corrupted, late uint64
		dropped, refused                               int
	}
	cases := map[string]struct {
		fault  string
		want   counts
		reason string // with the device and the time
		args   []string
	}{
		"drop":         {"drop:id=soak-7,noop=3", counts{missed: 1}, `soak-7 missed noop 3: the number was skipped, noticed at \d\d:\d\d:\d\d`, nil},
		"drop first":   {"drop:id=soak-7,noop=1", counts{missed: 1}, `soak-7 missed noop 1: the number was skipped`, nil},
		"duplicate":    {"duplicate:id=soak-7,noop=3", counts{duplicated: 1}, `soak-7 received noop 3 twice, again at \d\d:\d\d:\d\d`, nil},
		"reorder":      {"reorder:id=soak-7,noop=3", counts{reordered: 1}, `soak-7 received noop 3 out of order, at \d\d:\d\d:\d\d`, nil},
		"corrupt":      {"corrupt:id=soak-7,noop=3", counts{corrupted: 1}, `soak-7 received noop 3 corrupted at \d\d:\d\d:\d\d\S* UTC: "x" instead of "0"`, nil},
		"delay":        {"delay=1500ms:id=soak-7,noop=3", counts{late: 1}, `soak-7 received noop 3 late by 1\.[45]\d* s, at \d\d:\d\d:\d\d`, []string{"--max-late", "0", "--noop-interval", "2", "--seconds", "15"}},
		"truncate":     {"truncate:id=soak-7,noop=3", counts{missed: 1, dropped: 1}, `soak-7 was closed by the server in the middle of a response after 2 noops, at \d\d:\d\d:\d\d\S* UTC`, nil},
		"stall":        {"stall:id=soak-7,noop=3", counts{missed: 2, dropped: 1}, `soak-7 went silent after 2 noops; closed by soak after \S+ s without data, at \d\d:\d\d:\d\d\S* UTC`, nil},
		"reset":        {"reset:id=soak-7,noop=3", counts{dropped: 1}, `soak-7 was disconnected \(reset\) after 2 noops, at \d\d:\d\d:\d\d\S* UTC`, []string{"--no-nginx"}},
		"refuse":       {"refuse:id=soak-7", counts{refused: 1}, `soak-7 was refused at \d\d:\d\d:\d\d\S* UTC \(status 503: refused by an injected fault; connect again\)`, nil},
		"wrong type":   {"wrong-type:id=soak-7", counts{refused: 1}, `soak-7 was refused at \d\d:\d\d:\d\d\S* UTC \(content_type: the response is "text/html; charset=utf-8", not text/event-stream\)`, nil},
		"slow headers": {"slow-headers=14s:id=soak-7", counts{refused: 1}, `soak-7 was refused at \d\d:\d\d:\d\d\S* UTC \(connect_timeout: no complete response header\b.*\)`, []string{"--seconds", "20"}},
	}
	for name, c := range cases {
		judge := func(t *testing.T, reason string, env []string, more ...string) *verdict.Verdict {
			t.Parallel()
			args := append(append([]string{"--connections", "20", "--seconds", "12", "--noop-interval", "1"}, c.args...), more...)
			r := begin(t, env, args...)
			v := r.judged()
			require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
			n := v.Messages
			require.Equal(t, c.want, counts{n.Missed, n.Duplicated, n.Reordered, n.Corrupted, n.Late, v.Connections.Dropped, v.Connections.Refused}, r.out.String())
			require.Regexp(t, regexp.MustCompile(reason), reasons(v))
			require.Equal(t, n.Expected, n.Received+n.Missed+n.Corrupted)
			return v
		}
		interval := "1"
		if i := slices.Index(c.args, "--noop-interval"); i >= 0 {
			interval = c.args[i+1]
		}
		t.Run(name, func(t *testing.T) { judge(t, c.reason, []string{"BACKEND_FAULT=" + c.fault}) })
		t.Run(name+" over TLS", func(t *testing.T) {
			url, trust := secureBackend(t, "BACKEND_FAULT="+c.fault, "NOOP_INTERVAL="+interval, "BACKEND_TOKEN=secret")
			judge(t, c.reason, []string{trust, "BACKEND_TOKEN=secret"}, "--backend-url", url, "--prefix", "soak-", "--connections", "10", "--runners", "1")
		})
		t.Run(name+" over HTTP/2", func(t *testing.T) {
			reason := strings.Replace(c.reason, "closed by the server in the middle of a response", `disconnected \(reset\)`, 1) // nginx sends RST_STREAM where it closes a connection of HTTP/1.1
			url := http2Front(t, backend(t, "BACKEND_FAULT="+c.fault, "NOOP_INTERVAL="+interval, "BACKEND_TOKEN=secret"))
			v := judge(t, reason, []string{"K6_INSECURE_SKIP_TLS_VERIFY=true", "BACKEND_TOKEN=secret"}, "--backend-url", url, "--prefix", "soak-", "--connections", "10", "--runners", "1")
			require.Positive(t, v.Shared.Connections)
		})
	}
}

// The clock finds one or both of the noops that are missing at the end, the server's ledger lists both: each is named once.
func TestEachLostNoopIsNamedOnce(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"BACKEND_FAULT=drop:noop=5,count=3"}, "--connections", "6", "--seconds", "20", "--noop-interval", "1")
	v := r.judged()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	named := map[string]uint64{} // of each connection
	for _, f := range v.Findings {
		if missed := regexp.MustCompile(`^(\S+) missed noops 5 (and|to) (\d+): nothing arrived after noop 4 `).FindStringSubmatch(f.Text); missed != nil {
			last, err := strconv.ParseUint(missed[3], 10, 64)
			require.NoError(t, err)
			require.NotContains(t, named, f.ID)
			named[f.ID] = last - 4
		} else {
			require.NotContains(t, f.Text, "missed", r.out.String())
		}
	}
	require.Len(t, named, 1, r.out.String())
	for _, n := range named {
		require.Equal(t, n, v.Messages.Missed)
		require.GreaterOrEqual(t, n, uint64(2))
	}
}

// The cause comes first, equal findings are one line, and their number is exact, though 50 of them are listed.
func TestADyingBackendFails(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r := begin(t, []string{"BACKEND_FAULT=die:noop=3"}, "--connections", "60", "--seconds", "12", "--noop-interval", "1", "--junit", filepath.Join(folder, "junit.xml"))
	v := r.judged()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Equal(t, 60, v.Connections.Dropped)
	require.Regexp(t, `^the backend died at `, v.Reasons[0])
	require.LessOrEqual(t, len(v.Headline()), 6, r.out.String())
	require.Equal(t, "target stayed up", v.Checks[0].Name)
	require.Equal(t, uint64(60), v.Total(ledger.KindDropped))
	dropped := 0
	for _, g := range v.Groups {
		if g.Kind == string(ledger.KindDropped) {
			dropped += g.Connections
			require.Contains(t, v.Reasons, g.Text)
		}
	}
	require.Equal(t, 60, dropped)
	require.Regexp(t, `clients (of runner \d )?were (closed by the server in the middle of a response|disconnected \(reset\)), (each after noop \d|after noops \d to \d), (at|from) `, reasons(v))
	page, err := os.ReadFile(r.dir.Path(results.PageFile))
	require.NoError(t, err)
	require.Regexp(t, `(?s)What happened.*the backend died at .*60 × dropped`, string(page))
	require.Contains(t, string(page), "planned")
	junit, err := os.ReadFile(filepath.Join(folder, "junit.xml"))
	require.NoError(t, err)
	require.Regexp(t, `(?s)name="target stayed up".*the backend died at`, string(junit))
}

func TestADyingBackendIsSurvivedByReconnecting(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"BACKEND_FAULT=die:noop=3"}, "--connections", "20", "--seconds", "20", "--noop-interval", "1", "--reconnect")
	v := r.judged()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Zero(t, v.Messages.Missed)
	require.GreaterOrEqual(t, v.Connections.Reconnected, 20)
	require.Equal(t, 20, v.Connections.Completed)
}
