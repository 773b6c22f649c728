package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/tools/page"
)

// What the description of a service says of its streams stands in the table in words.
func TestTraits(t *testing.T) {
	for _, c := range []struct {
		name, described string
		want            traits
	}{
		{"nchan", `{"heartbeat":{"event":"ping","every":30},"end":{"by":"client"},"resume":{"by":"header"}}`,
			traits{"event `ping`, 30 s", "no", "by `Last-Event-ID`; silent where its buffer is too short"}},
		{"mercure", `{"heartbeat":{"comment":true,"every":40},"end":{"by":"server","lifetime":[475,600]},"resume":{"by":"header","gap":{"header":"a: b"}}}`,
			traits{"comment, 40 s", "after 475 to 600 s", "by `Last-Event-ID`, says when it cannot"}},
		{"x", `{"heartbeat":{"data":"{}","every":25},"end":{"by":"server","lifetime":60},"resume":{"by":{"query":"since"}}}`,
			traits{"data `{}`, 25 s", "after 60 s", "by a parameter"}},
		{"pocketbase", `{"resume":{"by":"none"}}`, traits{"none", "no", "no"}},
		{"x", `{}`, traits{"none", "no", "by `Last-Event-ID`"}},
	} {
		got, err := traitsOf(c.name, []byte(c.described))
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.described)
	}
	_, err := traitsOf("x", []byte(`[]`))
	require.ErrorContains(t, err, "read the description of x")
}

// The cost is that of the time in which all streams were open, without what came before and after.
func TestCostOfAWindow(t *testing.T) {
	begin := time.Unix(1000, 0)
	var s sampler
	for i := range 20 {
		memory := uint64(100)
		if i == 7 {
			memory = 900
		}
		s.samples = append(s.samples, sample{begin.Add(time.Duration(i) * time.Second), services.Usage{Memory: memory, CPU: float64(i * i)}, 2})
	}
	c, err := s.between(begin.Add(5*time.Second), begin.Add(10*time.Second))
	require.NoError(t, err)
	require.Equal(t, Cost{HeldBytes: 100, MostBytes: 900, CPUSeconds: 75, WindowS: 5, Load: 2}, c)

	s.failed = errors.New("it does not run")
	_, err = s.between(begin.Add(time.Minute), begin.Add(2*time.Minute))
	require.EqualError(t, err, "0 samples of its memory and CPU in 60 s: it does not run")
}

// A verdict of a run with a publisher becomes a row: its sums, what it cost per stream and message, and why it failed.
func TestRow(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "runs", "mine")
	require.NoError(t, os.MkdirAll(run, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(run, "verdict.json"), []byte(`{
		"verdict": "fail", "reasons": ["one", "two"], "checks": [{"name": "opened", "pass": true},
			{"name": "messages missed", "limit": "0", "actual": "10"}], "started_unix_s": 1000, "ended_unix_s": 1100,
		"connections": {"opened": 10}, "latency_ms": {"p50": 1.25, "p99": 20, "max": 1234.5}, "connect_ms": {"p99": 7},
		"messages": {"received": 950, "expected": 960, "missed": 10, "duplicated": 2, "repeated": 1, "reordered": 3,
			"last_subscriber_ms": {"p50": 2, "p99": 3, "max": 4}, "published": {"rate": 2, "planned": 190, "confirmed": 189, "answer_ms": {"p99": 5}}},
		"tables": [{"title": "Resumes by kind of disconnect", "note": "away: in seconds", "columns": ["cut", "lost"], "rows": [["fin", "3"], ["rst", ""]]}],
		"generator": {"cpu_seconds": 5, "starved": true}}`), 0o600))
	r := row{Service: "mine", Version: "1.0"}
	r.outcomeOf(run, nil, nil)
	require.Equal(t, []string{"one", "messages missed: 10 (limit: 0)"}, r.Findings)
	require.Equal(t, []uint64{950, 960, 10, 3, 3}, []uint64{r.Received, r.Expected, r.Lost, r.Repeated, r.Reordered})
	from, to := window(r.verdict)
	require.Equal(t, []int64{1025, 1097}, []int64{from.Unix(), to.Unix()})
	r.charge(Cost{IdleBytes: 1 << 20, HeldBytes: 1<<20 + 20<<10, CPUSeconds: 7.2, WindowS: 72, Load: 1.5})
	require.InDelta(t, 2, r.KBPerStream, 1e-9)
	require.InDelta(t, 10, r.CorePercent, 1e-9)
	require.InDelta(t, 1e4, r.MicrosPerMessage, 1e-6) // 10 messages per second
	require.InDelta(t, 36, r.PerStreamHour, 1e-9)

	var text strings.Builder
	whole := report{Suite: "resume", Ran: &page.Ran{}, Load: load{2000, 20, 20, 300, 2}, Rows: []row{r, row{Service: "other"}.broke(errors.New("it is\nnot there"))}}
	require.NoError(t, whole.write(&text))
	written := regexp.MustCompile(` +`).ReplaceAllString(text.String(), " ")
	for _, line := range []string{
		"| mine | fail | 950 | 10 | 3 | 3 | 1.2 / 20 / 1,235 | 2.0 / 3.0 / 4.0 | 5.0 |",
		"| other | not measured | – | – | – | – | – | – | – |",
		"\n\nResumes by kind of disconnect (away: in seconds):\n\n| service | cut | lost |\n|--- |--- |--- |\n| mine | fin | 3 |\n| mine | rst | – |\n",
		"| mine | 2.0 | 1.0 | 10 | 10,000 | 36 | 7.0 | 5.0, saturated | 1.5 |",
		"| mine | 1.0 | – | – | – | – |",
		"- mine: one", "- mine: messages missed: 10 (limit: 0)", "- other: it is not there",
	} {
		require.Contains(t, written, line+"\n")
	}
}

// A run without a verdict is a row with the last output of soak.
func TestRunWithoutVerdict(t *testing.T) {
	r := row{Service: "mine"}
	r.outcomeOf(t.TempDir(), []byte("soak: publish: POST http://HOST/pub answered 401\n"), errors.New("exit status 64"))
	require.Equal(t, "the soak ended without a verdict (exit status 64): soak: publish: POST http://HOST/pub answered 401", r.outcome())
}

func TestOptionsAreCheckedFirst(t *testing.T) {
	ask := func(b bench) error { b.root, b.out = "../..", t.TempDir(); return b.check() }
	good := load{10, 2, 2, 30, 1}
	require.ErrorContains(t, ask(bench{load: good, only: bare}), "-only -without-history: choose from nchan, mercure,")
	require.ErrorContains(t, ask(bench{load: good, only: "nchan,nchen"}), "-only nchen: choose from nchan, mercure,")
	for _, bad := range []load{{0, 2, 2, 30, 1}, {10, 0, 2, 30, 1}, {10, 2, 0, 30, 1}, {10, 2, 2, 30, 0}, {10, 2, 2, 14, 1}} {
		require.ErrorContains(t, ask(bench{load: bad}), "must be positive")
	}
}
