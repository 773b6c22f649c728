package suite

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// endTables returns the table of the requests that ended the streams, if there were any: those that succeeded, also by server, and
// those that failed, also by cause.
func endTables(e *verdict.Ends) []verdict.Table {
	if e == nil {
		return nil
	}
	t := newTable("Requests that end the streams", sentence("%s; from the first to the end of the last %s, at most %v in one second. "+
		"Times in ms, from asking for a connection to the last byte", e.Request, format.Milliseconds(1000*e.Seconds), e.MostASecond),
		"requests|count|per second|min|p50|p95|p99|max")
	rate := func(n int64) string {
		if e.Seconds <= 0 {
			return ""
		}
		return count(float64(n) / e.Seconds)
	}
	add := func(name string, n int64, rate, min string, q *verdict.Quantiles) {
		cells := row(name, n, rate, min, "", "", "", "")
		if q != nil {
			copy(cells[4:], []string{figure(q.P50), figure(q.P95), figure(q.P99), figure(q.Max)})
		}
		t.Add(cells...)
	}
	answered := func(name string, times verdict.EndTimes) {
		if times.Count == 0 {
			add(name, 0, "", "", nil)
			return
		}
		add(name, times.Count, rate(times.Count), figure(times.MinMS), &times.MS)
	}
	answered("answered", e.EndTimes)
	for _, s := range e.Servers {
		if s.Count > 0 {
			answered("answered by "+s.Name, s.EndTimes)
		}
	}
	if e.FailedMS != nil {
		add("failed", e.Failed, rate(e.Failed), "", e.FailedMS)
	}
	mostFirst := func(a, b string) int { return cmp.Or(cmp.Compare(e.Failures[b], e.Failures[a]), cmp.Compare(a, b)) }
	for _, code := range slices.SortedFunc(maps.Keys(e.Failures), mostFirst) {
		add("failed: "+codeText(code), e.Failures[code], "", "", nil)
	}
	for _, s := range e.Servers {
		if s.Failed > 0 {
			add("failed at "+s.Name, s.Failed, "", "", nil)
		}
	}
	return []verdict.Table{t}
}
