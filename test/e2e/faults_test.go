//go:build e2e

package e2e

import (
	"fmt"
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

// A faultCounts has the counts of a verdict that a fault changes.
type faultCounts struct {
	missed, duplicated, reordered, corrupted, late uint64
	dropped, refused                               int
}

func faultCountsOf(v *verdict.Verdict) faultCounts {
	n := v.Messages
	return faultCounts{n.Missed, n.Duplicated, n.Reordered, n.Corrupted, n.Late, v.Connections.Dropped, v.Connections.Refused}
}

// A knownFault is a fault of the backend on one connection, and the finding: its reason has the time, and the id at ID.
type knownFault struct {
	name, fault string
	want        faultCounts
	reason      string
	args        []string
}

var (
	knownFaults = []knownFault{
		{"drop", "drop:id=ID,noop=3", faultCounts{missed: 1}, `ID missed noop 3: the number was skipped, noticed at \d\d:\d\d:\d\d`, nil},
		{"drop first", "drop:id=ID,noop=1", faultCounts{missed: 1}, `ID missed noop 1: the number was skipped`, nil},
		{"duplicate", "duplicate:id=ID,noop=3", faultCounts{duplicated: 1}, `ID received noop 3 twice, again at \d\d:\d\d:\d\d`, nil},
		{"reorder", "reorder:id=ID,noop=3", faultCounts{reordered: 1}, `ID received noop 3 out of order, at \d\d:\d\d:\d\d`, nil},
		{"corrupt", "corrupt:id=ID,noop=3", faultCounts{corrupted: 1}, `ID received noop 3 corrupted at \d\d:\d\d:\d\d\S* UTC: "x" instead of "0"`, nil},
		{"truncate", "truncate:id=ID,noop=3", faultCounts{missed: 1, dropped: 1}, `ID was closed by the server in the middle of a response after 2 noops, at \d\d:\d\d:\d\d\S* UTC`, nil},
		{"stall", "stall:id=ID,noop=3", faultCounts{missed: 2, dropped: 1}, `ID went silent after 2 noops; closed by soak after \S+ s without data, at \d\d:\d\d:\d\d\S* UTC`, nil},
		{"reset", "reset:id=ID,noop=3", faultCounts{dropped: 1}, `ID was disconnected \(reset\) after 2 noops, at \d\d:\d\d:\d\d\S* UTC`, []string{"--no-nginx"}},
		{"refuse", "refuse:id=ID", faultCounts{refused: 1}, `ID was refused at \d\d:\d\d:\d\d\S* UTC \(status 503: refused by an injected fault; connect again\)`, nil},
		{"wrong type", "wrong-type:id=ID", faultCounts{refused: 1}, `ID was refused at \d\d:\d\d:\d\d\S* UTC \(content_type: the response is "text/html; charset=utf-8", not text/event-stream\)`, nil},
		{"slow headers", "slow-headers=14s:id=ID", faultCounts{refused: 1}, `ID was refused at \d\d:\d\d:\d\d\S* UTC \(connect_timeout: no complete response header\b.*\)`, []string{"--seconds", "20"}},
	}
	// delayFault needs a longer interval than the others: a stream that is silent for 2.5 intervals is closed.
	delayFault = knownFault{"delay", "delay=1500ms:id=ID,noop=3", faultCounts{late: 1}, `ID received noop 3 late by 1\.[45]\d* s, at \d\d:\d\d:\d\d`,
		[]string{"--max-late", "0", "--noop-interval", "2", "--seconds", "15"}}
)

// allFindings returns the text of each finding: reasons group equal ones.
func allFindings(v *verdict.Verdict) string {
	var all strings.Builder
	for _, f := range v.Findings {
		fmt.Fprintln(&all, f.Text)
	}
	return all.String()
}

// findsFault starts a run with faults, and requires that it fails with these counts and that a text has the reasons.
func findsFault(t *testing.T, want faultCounts, found []string, in func(*verdict.Verdict) string, env, args []string) *verdict.Verdict {
	t.Helper()
	r := begin(t, env, append([]string{"--connections", "20", "--seconds", "12", "--noop-interval", "1"}, args...)...)
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Equal(t, want, faultCountsOf(v), allFindings(v)+r.out.String())
	for _, reason := range found {
		require.Regexp(t, reason, in(v))
	}
	require.Equal(t, v.Messages.Expected, v.Messages.Received+v.Messages.Missed+v.Messages.Corrupted)
	return v
}

// Each known fault alone, on one connection of many, fails the run: the count is exact, and the reasons name fault, client and
// time.
func TestFaultsAreFoundExactly(t *testing.T) {
	t.Parallel()
	for _, c := range append([]knownFault{delayFault}, knownFaults...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const id = "soak-7"
			findsFault(t, c.want, []string{strings.ReplaceAll(c.reason, "ID", id)}, reasons, []string{"BACKEND_FAULT=" + strings.ReplaceAll(c.fault, "ID", id)}, c.args)
		})
	}
}

// Over TLS and over HTTP/2 all faults are found in one run, each on its own connection.
func TestFaultsAreFoundExactlyOverOtherTransports(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, interval string
		faults         []knownFault
		args           []string
	}{
		{"all but delay", "1", knownFaults, []string{"--seconds", "20"}},
		{"delay", "2", []knownFault{delayFault}, delayFault.args},
	} {
		var faults, found []string
		var want faultCounts
		for i, f := range c.faults {
			id := fmt.Sprintf("soak-%d", 2*i) // neighbours share a connection of HTTP/2
			faults, found = append(faults, strings.ReplaceAll(f.fault, "ID", id)), append(found, strings.ReplaceAll(f.reason, "ID", id))
			want = faultCounts{
				want.missed + f.want.missed, want.duplicated + f.want.duplicated, want.reordered + f.want.reordered, want.corrupted + f.want.corrupted,
				want.late + f.want.late, want.dropped + f.want.dropped, want.refused + f.want.refused,
			}
		}
		args := append(slices.Clone(c.args), "--prefix", "soak-", "--runners", "1", "--connections", "24", "--backend-url")
		env := []string{"BACKEND_FAULT=" + strings.Join(faults, ";"), "NOOP_INTERVAL=" + c.interval, "BACKEND_TOKEN=secret"}
		t.Run(c.name+" over TLS", func(t *testing.T) {
			t.Parallel()
			url, trust := secureBackend(t, env...)
			findsFault(t, want, found, allFindings, []string{trust, "BACKEND_TOKEN=secret"}, append(slices.Clone(args), url))
		})
		t.Run(c.name+" over HTTP/2", func(t *testing.T) {
			t.Parallel()
			text := strings.Join(found, "\n") // nginx sends RST_STREAM when it closes a connection of HTTP/1.1
			found := strings.Split(strings.ReplaceAll(text, "closed by the server in the middle of a response", `disconnected \(reset\)`), "\n")
			v := findsFault(t, want, found, allFindings, []string{"K6_INSECURE_SKIP_TLS_VERIFY=true", "BACKEND_TOKEN=secret"}, append(slices.Clone(args), http2Front(t, backend(t, env...))))
			require.Positive(t, v.Shared.Connections)
		})
	}
}

// The clock finds one or both of the noops that are missing at the end, the server's ledger lists both: each is named once.
func TestLostNoopsAreNamedOnce(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"BACKEND_FAULT=drop:noop=5,count=3"}, "--connections", "6", "--seconds", "20", "--noop-interval", "1")
	v := r.verdict()
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
func TestCrashingBackendFails(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r := begin(t, []string{"BACKEND_FAULT=die:noop=3"}, "--connections", "60", "--seconds", "12", "--noop-interval", "1", "--junit", filepath.Join(folder, "junit.xml"))
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Equal(t, 60, v.Connections.Dropped)
	require.Regexp(t, `^the backend died at `, v.Reasons[0])
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

func TestReconnectsSurviveBackendCrash(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"BACKEND_FAULT=die:noop=3"}, "--connections", "20", "--seconds", "20", "--noop-interval", "1", "--reconnect")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Zero(t, v.Messages.Missed)
	require.GreaterOrEqual(t, v.Connections.Reconnected, 20)
	require.Equal(t, 20, v.Connections.Completed)
}
