package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/tools/page"
)

func (b *servicesBench) write(w io.Writer) error {
	l := b.Load
	if b.Suite != "" {
		fmt.Fprintf(w, "`soak run %s`: ", b.Suite)
	}
	fmt.Fprintf(w, "%s, %s, %g messages/s (one per stream every %g s), %d s each, one service at a time. %s.\n\n",
		format.Plural(l.Connections, "stream", "streams"), format.Plural(l.Topics, "topic", "topics"), l.Rate, l.interval(), l.Seconds, page.Origin(b.RunInfo, b.Date))
	b.table(w, "verdict, received, lost, repeated, reordered, published → received (ms: p50 / p99 / max), → last subscriber, publish answered (ms: p99)", func(row *row) []string {
		m, latency, answer := row.Messages, "", ""
		if row.LatencyMS != nil {
			latency = formatQuantiles(&row.LatencyMS.Quantiles)
		}
		if m.Published != nil {
			answer = formatP99(&m.Published.ResponseMS)
		}
		return []string{
			row.verdictText(), row.count(m.Received), row.count(m.Missed), row.count(m.Duplicated + m.Repeated), row.count(m.Reordered),
			latency, formatQuantiles(m.LastSubscriberMS), answer,
		}
	})
	b.writeTables(w)
	b.table(w, "KB per stream, idle (MB), % of a core, µs per message, CPU s per stream and hour, connect (ms: p99), load generator (% of a core), load average", (*row).costs)
	b.table(w, "version, settings, heartbeat, ends streams, resumes", func(row *row) []string {
		return append([]string{row.Version, row.Settings}, traits[strings.TrimSuffix(row.Service, bareSuffix)]...)
	})
	for _, row := range b.Rows {
		for _, f := range row.Findings {
			fmt.Fprintf(w, "- %s: %s\n", row.Service, strings.ReplaceAll(strings.TrimSpace(f), "\n", " "))
		}
	}
	return page.WriteRunInfo(w, b.RunInfo)
}

// table writes a table with a row for each service. columns has the titles of the columns, separated by ", ".
func (b *servicesBench) table(w io.Writer, columns string, cells func(*row) []string) {
	var rows [][]string
	for i := range b.Rows {
		rows = append(rows, append([]string{b.Rows[i].Service}, cells(&b.Rows[i])...))
	}
	page.Table(w, append([]string{"service"}, strings.Split(columns, ", ")...), rows)
	fmt.Fprintln(w)
}

// writeTables writes the tables of the suite, each with the rows of all services.
func (b *servicesBench) writeTables(w io.Writer) {
	var titles []string
	for _, first := range b.Rows {
		for _, t := range first.Tables {
			if slices.Contains(titles, t.Title) {
				continue
			}
			titles = append(titles, t.Title)
			var rows [][]string
			for _, row := range b.Rows {
				for _, table := range row.Tables {
					if table.Title != t.Title {
						continue
					}
					for _, cells := range table.Rows {
						rows = append(rows, append([]string{row.Service}, cells...))
					}
				}
			}
			fmt.Fprintf(w, "%s (%s):\n\n", t.Title, t.Note)
			page.Table(w, append([]string{"service"}, t.Columns...), rows)
			fmt.Fprintln(w)
		}
	}
}

func (r *row) verdictText() string {
	if r.Verdict == "" {
		return "not measured"
	}
	return string(r.Verdict)
}

func (r *row) count(n uint64) string {
	if r.Verdict == "" {
		return ""
	}
	return format.Thousands(n)
}

func formatQuantiles(q *verdict.Quantiles) string {
	if q == nil {
		return ""
	}
	return formatNumber(q.P50) + " / " + formatNumber(q.P99) + " / " + formatNumber(q.Max)
}

func formatP99(q *verdict.Quantiles) string {
	if q == nil {
		return ""
	}
	return formatNumber(q.P99)
}

// formatNumber formats a number with two significant digits, or with all digits before the point, grouped by three.
func formatNumber(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1000:
		return format.Thousands(int64(math.Round(v)))
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a == 0:
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}
