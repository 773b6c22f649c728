// Package report renders a verdict for people: report.txt for a terminal, report.md for a
// pull request, connections.csv and series.csv for a spreadsheet.
package report

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const (
	textWidth  = 80
	nameWidth  = 38
	limitWidth = 16
)

// Text writes at most 80 columns, but for URLs and sentences that cannot be broken.
func Text(w io.Writer, v *verdict.Verdict) error {
	out := printer{bufio.NewWriter(w)}
	out.printf("%s  %s\n", strings.ToUpper(string(v.Verdict)), plain(v.TestID))
	for _, r := range v.Reasons {
		out.wrapped("  - ", r)
	}
	out.printf("\n")
	for _, row := range facts(v) {
		line := fmt.Sprintf("%-12s %s", row[0], plain(row[1]))
		if utf8.RuneCountInString(line) > textWidth {
			out.wrapped(fmt.Sprintf("%-12s ", row[0]), row[1])
			continue
		}
		out.printf("%s\n", line)
	}
	out.printf("\n")
	criteria(out, v.Criteria)
	for _, table := range v.Tables {
		out.table(table)
	}
	for _, warning := range v.Warnings {
		out.wrapped("warning: ", warning)
	}
	return out.Flush()
}

// criteria sets the table of criteria; what does not fit its column goes on in the next line.
func criteria(out printer, all []verdict.Criterion) {
	name := len("criterion")
	for _, c := range all {
		name = max(name, min(utf8.RuneCountInString(plain(c.Name)), nameWidth))
	}
	row := func(mark string, cells ...string) {
		line := fmt.Sprintf("%-2s  %-*s  %-*s  %s", mark, name, cells[0], limitWidth, cells[1], cells[2])
		out.printf("%s\n", strings.TrimRight(line, " "))
	}
	row("", "criterion", "limit", "actual")
	for _, c := range all {
		first := plainMarks[Mark(c)]
		names, limits, actuals := fold(c.Name, nameWidth, true), fold(c.Limit, limitWidth, true), fold(c.Actual, textWidth-name-limitWidth-8, true)
		for len(names)+len(limits)+len(actuals) > 0 {
			row(first, pop(&names), pop(&limits), pop(&actuals))
			first = ""
		}
	}
}

// Mark is how a criterion came out: ✓ met, ✗ not met, ? not met, which makes the run invalid, ! a warning.
func Mark(c verdict.Criterion) string {
	switch {
	case c.Pass:
		return "✓"
	case c.Advisory:
		return "!"
	case c.Invalid:
		return "?"
	}
	return "✗"
}

// plainMarks are the marks for a terminal, which may know no others.
var plainMarks = map[string]string{"✓": "ok", "✗": "XX", "?": "??", "!": "!!"}

// facts say what ran and what came of it, in the order in which people ask.
func facts(v *verdict.Verdict) [][2]string {
	if v.Layout.Declared {
		return declaredFacts(v)
	}
	p, c, n := v.Plan, v.Connections, v.Noops
	var faults []string
	for _, total := range n.Each() {
		if total.Fault {
			faults = append(faults, fmt.Sprintf("%d %s", total.Count, total.Name))
		}
	}
	faults = append(faults, fmt.Sprintf("%d over %d ms late", n.Late, p.LateMS))
	rows := [][2]string{
		{"plan", fmt.Sprintf("%s, %s, a noop every %v s, %s",
			format.Count(p.Connections, "connection"), seconds(p.Seconds), p.NoopInterval, format.Count(p.Runners, "runner"))},
		{"target", p.BackendURL},
		{"connections", fmt.Sprintf("%s opened, %s held to the end, %d refused, %d dropped", format.Thousands(c.Opened), format.Thousands(c.Completed), c.Refused, c.Dropped)},
		{"open", openTime(v.Held)},
		{"noops", fmt.Sprintf("%s of %s received, %s,", format.Thousands(n.Received), format.Thousands(n.Expected), strings.Join(faults[:2], ", "))},
		{"", strings.Join(faults[2:], ", ")},
		{"lateness", quantiles(v.LatenessMS)},
	}
	if v.LatencyMS != nil {
		above := "since the server's timestamp"
		if v.LatencyMS.Above != verdict.AboveSend {
			above = "above the fastest noop"
		}
		rows = append(rows, [2]string{"latency", quantiles(v.LatencyMS.Quantiles)}, [2]string{"", above})
	}
	rows = append(rows, [2]string{"connect", quantiles(v.ConnectMS)})
	if len(v.RefusedAttempts) > 0 {
		rows = append(rows, [2]string{"refused", attempts(v.RefusedAttempts)})
	}
	if v.Server.Known {
		agrees := "which is what arrived"
		if !v.Server.Agrees {
			agrees = "which is NOT what arrived"
		}
		if v.Server.Confirms {
			agrees += ", but only where faults were found"
		}
		rows = append(rows, [2]string{"server", fmt.Sprintf("says it sent %s, %s", format.Thousands(v.Server.Sent), agrees)})
	} else {
		rows = append(rows, [2]string{"server", "keeps no ledger that we could read; judged by the " + v.Evidence.Client()})
	}
	r := v.Resources
	if r.BackendRSSMax > 0 {
		rows = append(rows, [2]string{"backend", fmt.Sprintf("%.1f %% of a core, %s at most", r.BackendCPUAverage, format.Bytes(r.BackendRSSMax))})
	}
	if r.NginxRSSMax > 0 {
		rows = append(rows, [2]string{"nginx", format.Bytes(r.NginxRSSMax) + " at most"})
	}
	rows = append(rows, [2]string{"runners", fmt.Sprintf("%.1f %% of a core together, %s at most each", r.RunnerCPUAverage, format.Bytes(r.RunnerRSSMax))})
	if v.Reconnect != nil {
		rows = append(rows, [2]string{"reconnects", fmt.Sprintf("%d; out for %s", c.Reconnected, quantiles(v.Reconnect.Quantiles))})
	}
	if o := v.LongestOutage; o != nil && p.Reconnect {
		rows = append(rows, [2]string{"longest out", fmt.Sprintf("%s, %s from %s on", ms(1000*o.Seconds), o.ID, format.Moment(o.Unix))})
	}
	if v.StartedUnix > 0 {
		rows = append(rows, [2]string{"from", format.Moment(v.StartedUnix) + " to " + format.Moment(v.EndedUnix)})
	}
	return rows
}

// openTime is how long streams were open against the plan.
func openTime(h *verdict.Held) string {
	if h == nil {
		return "not known"
	}
	return fmt.Sprintf("%s of the planned time, %s of %s stream-seconds", h.Percent(), format.Thousands(uint64(h.Held)), format.Thousands(uint64(h.Planned)))
}

// attempts lists refused attempts by reason.
func attempts(n map[string]int) string {
	var all []string
	for _, reason := range slices.Sorted(maps.Keys(n)) {
		all = append(all, fmt.Sprintf("%s by %s", format.Count(n[reason], "attempt"), reason))
	}
	return strings.Join(all, ", ")
}

func quantiles(q verdict.Quantiles) string {
	return fmt.Sprintf("p50 %s  p95 %s  p99 %s  max %s", ms(q.P50), ms(q.P95), ms(q.P99), ms(q.Max))
}

func ms(v float64) string {
	switch {
	case v >= 10_000:
		return fmt.Sprintf("%.1f s", v/1000)
	case v >= 100:
		return fmt.Sprintf("%.0f ms", v)
	}
	return fmt.Sprintf("%.1f ms", v)
}

func seconds(s int) string { return (time.Duration(s) * time.Second).String() }

// fold breaks s between words into lines of at most so many characters; a word that is longer
// has a line of its own, or with cut is cut into several.
func fold(s string, most int, cut bool) (lines []string) {
	line := []rune{}
	for _, word := range strings.Fields(plain(s)) {
		w := []rune(word)
		if len(line) > 0 && len(line)+1+len(w) <= most {
			line = append(append(line, ' '), w...)
			continue
		}
		if len(line) > 0 {
			lines = append(lines, string(line))
		}
		for cut && len(w) > most {
			lines = append(lines, string(w[:most]))
			w = w[most:]
		}
		line = w
	}
	return append(lines, string(line))
}

// pop takes the first line off, empty where there is none.
func pop(lines *[]string) (first string) {
	if len(*lines) > 0 {
		first, *lines = (*lines)[0], (*lines)[1:]
	}
	return first
}

// plain takes out what a terminal or the table would obey: escapes, tabs, line ends.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// A printer keeps its first error for Flush.
type printer struct{ *bufio.Writer }

func (p printer) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// wrapped sets a text in lines behind a prefix, as far in as that.
func (p printer) wrapped(prefix, text string) {
	for _, line := range fold(text, textWidth-len(prefix), false) {
		p.printf("%s%s\n", prefix, line)
		prefix = strings.Repeat(" ", len(prefix))
	}
}
