package suite

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// endTables is the table of the requests that ended the streams, none where there were none: those that were answered as they should be,
// the same by server, and those that were not, by what became of them.
func endTables(e *verdict.Ends) []verdict.Table {
	if e == nil {
		return nil
	}
	t := verdict.Table{
		Title: "Requests that end the streams",
		Note: fmt.Sprintf("%s; from the first to the end of the last %s, at most %s in one second. Times in ms, from asking for a connection to the last byte",
			e.Request, format.Milliseconds(1000*e.Seconds), format.Thousands(e.MostASecond)),
		Columns: []string{"requests", "count", "per second", "min", "p50", "p95", "p99", "max"},
	}
	rate := func(n int64) string {
		if e.Seconds <= 0 {
			return ""
		}
		return count(float64(n) / e.Seconds)
	}
	row := func(name string, times verdict.EndTimes) {
		if times.Count == 0 {
			t.Add(name, "0", "", "", "", "", "", "")
			return
		}
		t.Add(name, format.Thousands(times.Count), rate(times.Count), figure(times.MinMS), figure(times.MS.P50), figure(times.MS.P95), figure(times.MS.P99), figure(times.MS.Max))
	}
	row("answered", e.EndTimes)
	for _, s := range e.Servers {
		if s.Count > 0 {
			row("answered by "+s.Name, s.EndTimes)
		}
	}
	if q := e.FailedMS; q != nil {
		t.Add("failed", format.Thousands(e.Failed), rate(e.Failed), "", figure(q.P50), figure(q.P95), figure(q.P99), figure(q.Max))
	}
	mostFirst := func(a, b string) int { return cmp.Or(cmp.Compare(e.Failures[b], e.Failures[a]), cmp.Compare(a, b)) }
	for _, code := range slices.SortedFunc(maps.Keys(e.Failures), mostFirst) {
		t.Add("failed: "+codeText(code), format.Thousands(e.Failures[code]), "", "", "", "", "", "")
	}
	for _, s := range e.Servers {
		if s.Failed > 0 {
			t.Add("failed at "+s.Name, format.Thousands(s.Failed), "", "", "", "", "", "")
		}
	}
	return []verdict.Table{t}
}
