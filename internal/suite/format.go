package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// count writes a whole number with commas, and a small one with what it needs.
func count(v float64) string {
	if v < 10 && v != float64(int64(v)) {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	s := strconv.FormatInt(int64(v+.5), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func whole(n int64) string { return count(float64(n)) }

// ms writes milliseconds with a unit, figure without one.
func ms(v float64) string {
	if v >= 10_000 {
		return fmt.Sprintf("%.1f s", v/1000)
	}
	return figure(v) + " ms"
}

func figure(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// ratio writes n of total with a percentage.
func ratio(n, total int64) string {
	if total == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.2f %%)", n, 100*share(n, total))
}

func percentOf(v float64) string { return strconv.FormatFloat(100*v, 'f', 2, 64) + " %" }

// change writes by how much a figure moved.
func change(from, to float64) string {
	if from == 0 {
		return "–"
	}
	return fmt.Sprintf("%+.1f %%", 100*(to-from)/from)
}

func megabytes(bytes float64) string { return fmt.Sprintf("%.1f MB", bytes/1e6) }

// latencyColumns and latencyRow are a table of latencies in milliseconds.
func latencyColumns(first string) []string {
	return []string{first, "n", "min", "mean", "sd", "p50", "p75", "p95", "p99", "max"}
}

func latencyRow(name string, q *Requests) []string {
	if q.OK.Count() == 0 {
		return []string{name, "0", "–", "–", "–", "–", "–", "–", "–", "–"}
	}
	h := q.OK
	return []string{
		name, whole(h.Count()), figure(q.Min()), figure(q.Mean()), figure(q.StdDev()), figure(quantile(h, .5)), figure(quantile(h, .75)),
		figure(quantile(h, .95)), figure(quantile(h, .99)), figure(float64(h.Max().Microseconds()) / 1000),
	}
}

// failedTable is the latency of what failed, which is none of the service's good answers.
func failedTable(first string, names []string, all []*Requests) (t verdict.Table, any bool) {
	t = verdict.Table{Title: "How long failed requests took, ms", Note: "apart from the good answers", Columns: []string{first, "failed", "p50", "p95", "p99", "max"}}
	for i, q := range all {
		if h := q.Failed; h.Count() > 0 {
			t.Rows = append(t.Rows, []string{
				names[i], whole(h.Count()), figure(quantile(h, .5)), figure(quantile(h, .95)), figure(quantile(h, .99)), figure(float64(h.Max().Microseconds()) / 1000),
			})
		}
	}
	return t, len(t.Rows) > 0
}

// errorTable lists what went wrong by code, the most frequent first.
func errorTable(q *Requests) (t verdict.Table, any bool) {
	t = verdict.Table{Title: "Errors", Columns: []string{"code", "what", "requests", "of failed", "of all"}}
	codes := make([]string, 0, len(q.Codes))
	for code := range q.Codes {
		codes = append(codes, code)
	}
	slices.SortFunc(codes, func(a, b string) int {
		return cmp.Or(cmp.Compare(q.Codes[b], q.Codes[a]), cmp.Compare(a, b))
	})
	for _, code := range codes {
		n := q.Codes[code]
		t.Rows = append(t.Rows, []string{code, what(code), whole(n), percentOf(share(n, q.Failed.Count())), percentOf(share(n, q.Total()))})
	}
	return t, len(t.Rows) > 0
}

// netErrors are k6's numbers (its documentation lists them), in words.
var netErrors = map[string]string{
	"1000": "no answer", "1010": "network error", "1020": "not a URL", "1050": "timeout", "1100": "name lookup failed", "1101": "no such host",
	"1200": "TCP error", "1201": "broken pipe", "1202": "network error", "1210": "connect failed", "1211": "connect timed out", "1212": "connection refused",
	"1213": "connect failed: addresses or ports used up", "1220": "connection reset", "1300": "TLS error", "1301": "no TLS",
	"1310": "certificate of an unknown authority", "1311": "certificate of another host", "1701": "content that cannot be unpacked",
}

// what says a code in words.
func what(code string) string {
	if code == shard.CodeWrong {
		return "wrong answer"
	}
	if status, ok := strings.CutPrefix(code, shard.CodeStatus); ok {
		return "status " + status
	}
	number, ok := strings.CutPrefix(code, shard.CodeNet)
	if !ok {
		return whatNumber(code)
	}
	if text, ok := netErrors[number]; ok {
		return text
	}
	if n, err := strconv.Atoi(number); err == nil && n >= 1600 && n < 1700 {
		return "HTTP/2 error"
	}
	return "k6's error " + number
}

// whatNumber says a code of older shards in words, which had 1000 + status for statuses: some numbers
// stand for either.
func whatNumber(code string) string {
	n, err := strconv.Atoi(code)
	text, isNet := netErrors[code]
	switch {
	case err != nil:
		return "unknown"
	case isNet && n >= 1100 && n < 1600:
		return fmt.Sprintf("%s, or status %d", text, n-1000)
	case isNet:
		return text
	case n >= 1100 && n < 1600:
		return fmt.Sprintf("status %d", n-1000)
	}
	return "k6's error " + code
}
