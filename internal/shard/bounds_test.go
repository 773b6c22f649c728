package shard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/ledger"
)

func repeatElement(element string, n int) string {
	return strings.TrimSuffix(strings.Repeat(element+",", n), ",")
}

// hostileShards returns shards that no runner writes, as JSON, with the expected errors.
func hostileShards(t testing.TB) map[string]struct{ text, want string } {
	t.Helper()
	text := func(change func(s *Shard)) string {
		s := newSmallShard()
		s.Checks, s.Metrics, s.Connections = nil, nil, nil
		change(s)
		b, err := json.Marshal(s)
		require.NoError(t, err)
		return string(b)
	}
	connection := func(r ledger.Record) string {
		r.ID = "a"
		return text(func(s *Shard) { s.Connections = []ledger.Record{r} })
	}
	// The times are relative to the start and the end of the runner.
	withMachine := func(from, to int64, counters ...machine.Series) string {
		return text(func(s *Shard) {
			s.Machine = &machine.Record{FromUS: s.Runner.StartedUS + from, ToUS: s.Runner.EndedUS + to, Counters: counters}
		})
	}
	withElements := func(list, element string, n int) string {
		t.Helper()
		original := text(func(s *Shard) { s.Series = nil })
		old := fmt.Sprintf("%q:null", list)
		require.Contains(t, original, old)
		return strings.Replace(original, old, fmt.Sprintf("%q:[%s]", list, repeatElement(element, n)), 1)
	}
	return map[string]struct{ text, want string }{
		"a bucket in 1970":                   {text(func(s *Shard) { s.Series = []Bucket{{Unix: 5}} }), "impossible bucket of the series: 1970-01-01 00:00:05 UTC is outside of the run from 2023-11-14"},
		"a bucket in the far future":         {text(func(s *Shard) { s.Series = []Bucket{{Unix: 1 << 62}} }), "impossible bucket of the series"},
		"a run of 53 years":                  {text(func(s *Shard) { s.Runner.StartedUS = 0 }), "impossible times of the runner"},
		"an end before the start":            {text(func(s *Shard) { s.Runner.EndedUS = 5 }), "impossible times of the runner"},
		"a second in 1970":                   {text(func(s *Shard) { s.Seconds = []Second{{FromUS: 1, ToUS: 2}} }), "impossible second: 1 µs to 2 µs"},
		"a plan of 2^40":                     {text(func(s *Shard) { s.Plan.Connections = 1 << 40 }), "connections of the plan must be from 0 to 10000000, got 1099511627776"},
		"2^40 runners":                       {text(func(s *Shard) { s.Plan.Runners = 1 << 40 }), "got 1 of 1099511627776"},
		"a count that overflows":             {connection(ledger.Record{Counts: ledger.Counts{Lost: 1<<64 - 1, Unsent: 1}}), "impossible count of the client a"},
		"a count that overflows a sum":       {connection(ledger.Record{Counts: ledger.Counts{Lost: 1 << 48}}), "impossible count of the client a"},
		"undetectable losses that overflow":  {connection(ledger.Record{Counts: ledger.Counts{Undetectable: 1<<64 - 1}}), "impossible count of the client a"},
		"a check with a negative count":      {text(func(s *Shard) { s.Checks = []ScriptCheck{{Name: "a", Passes: 2, Fails: -1}} }), "-1 failed"},
		"a histogram of too many buckets":    {withElements("metrics", `{"trend":{"max_us":0,"counts":"//8BAQ=="}}`, 1), "unreadable buckets"},
		"a histogram with a bucket twice":    {strings.Replace(text(func(*Shard) {}), `"counts":"`, `"counts":"AAAA`, 1), "unreadable buckets"},
		"a host of a megabyte":               {text(func(s *Shard) { s.Runner.Host = strings.Repeat("h", 1<<20) }), "texts must have at most 4096 bytes, got 1048576"},
		"101 kinds of findings":              {connection(ledger.Record{Findings: findingsOfKinds(101)}), "findings must have at most 100 kinds"},
		"a machine of another run":           {withMachine(-60e6, 0, machine.Series{Name: "steal"}), "impossible times of the machine"},
		"a machine that was watched forever": {withMachine(0, 1<<62, machine.Series{Name: "steal"}), "impossible times of the machine"},
		"a machine with a counter twice":     {withMachine(0, 0, machine.Series{Name: "steal"}, machine.Series{Name: "steal"}), "duplicate counter steal of the machine"},
		"requests without undelayed times": {text(func(s *Shard) {
			s.Metrics = []Metric{{Name: RequestDuration, Count: 1, Trend: NewHistogram()}}
		}), "metric request_duration must have trend and undelayed"},
		"a metric with 101 tags": {text(func(s *Shard) {
			s.Metrics = []Metric{{Name: "a", Tags: map[string]string{}}}
			for i := range 101 {
				s.Metrics[0].Tags[fmt.Sprint(i)] = ""
			}
		}), "metric \"a\" must have at most 100 tags, got 101"},
		"a client of a megabyte":                      {connection(ledger.Record{Findings: make([]ledger.Finding, maxRecord/len(`{"kind":"","at_ns":0},`))}), "the record of a client must have at most 1024 KiB"},
		"a runner that replaces one of two years ago": {text(func(s *Shard) { s.Runner.ReplacedStartUS = s.Runner.StartedUS - 2*365*86400e6 }), "impossible start of the replaced runner"},
		"a runner that replaces a later one":          {text(func(s *Shard) { s.Runner.ReplacedStartUS = s.Runner.StartedUS + 3600e6 }), "impossible start of the replaced runner"},
		"control streams that ended −1 times":         {text(func(s *Shard) { s.Control = &Control{EndedEarly: -1} }), "impossible count of the control group"},
		"control events that were late by −1 µs":      {text(func(s *Shard) { s.Control = &Control{ControlCounts: ControlCounts{LongestUS: -1}} }), "impossible count of the control group"},
		"2^60 control events":                         {text(func(s *Shard) { s.Control = &Control{ControlCounts: ControlCounts{Received: 1 << 60}} }), "impossible count of the control group"},
		"a control group with a limit of decades":     {text(func(s *Shard) { s.Control = &Control{LateMS: 1 << 40} }), "impossible limit of lateness of the control group"},
		"−1 compressed streams":                       {text(func(s *Shard) { s.Codings = []Coding{{Streams: -1}} }), "impossible content codings"},
		"too many compressed messages":                {text(func(s *Shard) { s.Codings = []Coding{{Messages: maxNumber + 1}} }), "impossible content codings"},
		"too many messages in bursts":                 {text(func(s *Shard) { s.Codings = []Coding{{BurstMessages: 1 << 63}} }), "impossible content codings"},
		"a coding with a long name":                   {text(func(s *Shard) { s.Codings = []Coding{{Name: strings.Repeat("x", maxCodingName+1)}} }), "impossible content codings"},
		"too many codings":                            {text(func(s *Shard) { s.Codings = make([]Coding, maxCodings+1) }), "impossible content codings"},
		"−1 streams over HTTP/2":                      {text(func(s *Shard) { s.HTTP2 = &HTTP2{Streams: -1} }), "impossible counts of HTTP/2 streams"},
		"more connections than streams":               {text(func(s *Shard) { s.HTTP2 = &HTTP2{Connections: 1} }), "impossible counts of HTTP/2 streams"},
		"too many streams over HTTP/2":                {text(func(s *Shard) { s.HTTP2 = &HTTP2{Streams: maxNumber + 1} }), "impossible counts of HTTP/2 streams"},
		"a maximum that only a merge sets":            {text(func(s *Shard) { s.HTTP2 = &HTTP2{Streams: 2, Connections: 1, MaxPerRunner: 5} }), "impossible counts of HTTP/2 streams"},
		"−1 responses without detectable losses":      {text(func(s *Shard) { s.Responses = NewResponses(); s.Responses.Uncovered = -1 }), "impossible responses"},
		"points of an hour":                           {text(func(s *Shard) { s.Points = make([]Bucket, MaxPoints+1) }), "points must have at most 600 elements"},
		"a number instead of a list":                  {strings.Replace(text(func(s *Shard) { s.Series = nil }), `"series":null`, `"series":7`, 1), "series must be a list"},
	}
}

func findingsOfKinds(n int) (out []ledger.Finding) {
	for i := range n {
		out = append(out, ledger.Finding{Kind: ledger.Kind(fmt.Sprint(i))})
	}
	return out
}

func TestHostileShardsAreRejectedWithAReason(t *testing.T) {
	t.Parallel()
	for name, c := range hostileShards(t) {
		_, err := Read(bytes.NewReader(pack(t, []byte(c.text))))
		require.ErrorContains(t, err, c.want, name)
		require.Less(t, len(err.Error()), 300, name)
		require.NotContains(t, err.Error(), "\n", name)
	}
}

// uniqueConnections returns the maximum number of client records of a shard, as elements of a JSON list. Their ids
// compress to 6 MB.
func uniqueConnections() string {
	random, list := rand.New(rand.NewPCG(1, 2)), new(strings.Builder)
	for i := range maxConnections {
		fmt.Fprintf(list, `%s{"id":"%011x"}`, strings.Repeat(",", min(i, 1)), random.Uint64N(1<<44))
	}
	return list.String()
}

// Reading a hostile shard, such as a gzip bomb, uses limited memory. A separate process reads each shard, because the
// heap of this process depends on the other tests.
func TestHostileShardsUseLittleMemory(t *testing.T) {
	const variable = "SOAK_TEST_HOSTILE_SHARD"
	if path := os.Getenv(variable); path != "" {
		if s, err := ReadFile(path); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(Merge(s.Plan, []*Shard{s}).Connections.Len(), "connections")
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println("HeapSys", m.HeapSys)
		return
	}
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s := newSmallShard()
	s.Checks, s.Metrics, s.Connections, s.Series = nil, nil, nil, nil
	text, err := json.Marshal(s)
	require.NoError(t, err)
	unix := s.Runner.StartedUS / 1e6
	for name, c := range map[string]struct{ list, elements, want string }{ // if list is "", elements is the whole text
		"a text of 64 MB":                 {"", `{"schema":3,"runner":{"host":"` + strings.Repeat("h", 64<<20) + `"}}`, "a value must have at most 8 MiB"},
		"half a million buckets and more": {"series", repeatElement(`{}`, maxBuckets+1), "series must have at most 524288 elements"},
		"four million findings":           {"connections", repeatElement(`{"id":"a","findings":[`+repeatElement(`{"at_ns":1}`, 50_000)+`]}`, 84), "connections must have at most 4194304 findings"},
		"a million ids":                   {"connections", uniqueConnections(), "1048576 connections"},
		"thirty million disconnects":      {"connections", repeatElement(`{"id":"a","cuts":{"list":[`+repeatElement(`{}`, 100_000)+`]}}`, 300), "lists in the record of a client must not have empty elements"},
		"half a million buckets":          {"series", repeatElement(fmt.Sprintf(`{"unix_s":%d,"undisturbed":{}}`, unix), maxBuckets), "0 connections"},
		"six thousand histograms":         {"metrics", repeatElement(`{"name":"a","trend":{"max_us":0,"counts":""}}`, maxMetrics), "0 connections"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hostile := c.elements
			if c.list != "" {
				hostile = strings.Replace(string(text), fmt.Sprintf("%q:null", c.list), fmt.Sprintf("%q:[%s]", c.list, c.elements), 1)
			}
			path := filepath.Join(t.TempDir(), "hostile.json.gz")
			file := pack(t, []byte(hostile))
			require.NoError(t, os.WriteFile(path, file, 0o600))
			reader := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHostileShardsUseLittleMemory$") // #nosec G204 -- this test
			reader.Env = append(os.Environ(), variable+"="+path)
			out, err := reader.CombinedOutput()
			require.NoError(t, err, string(out))
			require.Contains(t, string(out), c.want)
			_, after, found := strings.Cut(string(out), "HeapSys ")
			require.True(t, found, string(out))
			var heap int
			_, err = fmt.Sscan(after, &heap)
			require.NoError(t, err)
			t.Logf("%d KB packed, %d MB unpacked: %d MB of heap", len(file)>>10, len(hostile)>>20, heap>>20)
			require.Less(t, heap, 300<<20)
		})
	}
}

// A segment with a number of a billion digits is rejected before the number is computed.
func TestHugeSegmentsAreRejected(t *testing.T) {
	t.Parallel()
	for _, segment := range []string{"1e999999999:1", "0:1/1e99999999", "0:" + strings.Repeat("9", 1<<20), "1/0:1", "-1:1", "0x1p999999999:1", "0:1:1"} {
		s := newSmallShard()
		s.Runner.Segment = segment
		m := Merge(planFor(1, 2), []*Shard{s})
		require.Len(t, m.Problems, 1, segment)
		require.Less(t, len(m.Problems[0]), 200)
		require.Contains(t, m.Problems[0], "has the segment")
	}
}

func TestMissingRunnersBeyondTheLimitAreCounted(t *testing.T) {
	t.Parallel()
	p := planFor(1_000_000, 1_000_000)
	m := Merge(p, nil)
	require.Len(t, m.Problems, maxMissing+2)
	require.Equal(t, "999990 more runners left no shard", m.Problems[maxMissing])
}
