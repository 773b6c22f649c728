package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/tools/page"
)

// A report is all that one run of servicesbench found.
type report struct {
	Schema int       `json:"schema"`
	Suite  string    `json:"suite,omitempty"` // "": the soak
	Date   time.Time `json:"date"`
	Ran    *page.Ran `json:"ran"`
	Load   load      `json:"load"`
	Rows   []row     `json:"services"`
}

// write writes the page.
func (r *report) write(w io.Writer) error {
	l := r.Load
	if r.Suite != "" {
		fmt.Fprintf(w, "`soak run %s`: ", r.Suite)
	}
	fmt.Fprintf(w, "%d streams, %d topics, %g messages/s (one per stream every %g s), %d s each, one service at a time. %s.\n\n",
		l.Connections, l.Topics, l.Rate, l.interval(), l.Seconds, page.Machine(r.Ran, r.Date))
	r.table(w, "verdict, received, lost, repeated, reordered, published → received (ms: p50 / p99 / max), → last subscriber, publish answered (ms: p99)", func(row *row) []string {
		return []string{
			row.named(), row.of(row.Received), row.of(row.Lost), row.of(row.Repeated), row.of(row.Reordered), threeOf(row.LatencyMS), threeOf(row.LastMS), p99(row.AnswerMS),
		}
	})
	r.found(w)
	r.table(w, "KB per stream, idle (MB), % of a core, µs per message, CPU s per stream and hour, connect (ms: p99), load generator (% of a core), load average", (*row).costs)
	r.table(w, "version, set to, heartbeat, ends streams, resumes", func(row *row) []string {
		return []string{row.Version, row.Settings, row.Traits.Heartbeat, row.Traits.Ends, row.Traits.Resumes}
	})
	for _, row := range r.Rows {
		for _, f := range row.Findings {
			fmt.Fprintf(w, "- %s: %s\n", row.Service, strings.ReplaceAll(strings.TrimSpace(f), "\n", " "))
		}
	}
	return page.WriteRan(w, r.Ran)
}

// table writes a table with a row for each service.
func (r *report) table(w io.Writer, columns string, cells func(*row) []string) {
	var rows [][]string
	for i := range r.Rows {
		rows = append(rows, append([]string{r.Rows[i].Service}, cells(&r.Rows[i])...))
	}
	page.Table(w, append([]string{"service"}, strings.Split(columns, ", ")...), rows)
	fmt.Fprintln(w)
}

// found writes the tables of the suite, each with the rows of all services.
func (r *report) found(w io.Writer) {
	var titles []string
	for _, of := range r.Rows {
		for _, t := range of.Tables {
			if slices.Contains(titles, t.Title) {
				continue
			}
			titles = append(titles, t.Title)
			var rows [][]string
			for _, row := range r.Rows {
				for _, same := range row.Tables {
					if same.Title != t.Title {
						continue
					}
					for _, cells := range same.Rows {
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

func (r *row) named() string {
	if r.Verdict == "" {
		return "not measured"
	}
	return r.Verdict
}

// of is a count, or nothing where there was no run.
func (r *row) of(n uint64) string {
	if r.Verdict == "" {
		return ""
	}
	return format.Thousands(n)
}

func (r *row) costs() []string {
	out := []string{"", "", "", "", "", p99(r.ConnectMS), "", ""}
	if r.Verdict != "" {
		out[6] = short(r.GeneratorPercent)
		if r.Saturated {
			out[6] += ", saturated"
		}
	}
	if c := r.Cost; c.WindowS > 0 {
		out[0], out[1], out[2] = short(r.KBPerStream), short(float64(c.IdleBytes)/(1<<20)), short(r.CorePercent)
		out[3], out[4], out[7] = short(r.MicrosPerMessage), short(r.PerStreamHour), short(c.Load)
	}
	return out
}

// threeOf is p50, p99 and the largest.
func threeOf(q *verdict.Quantiles) string {
	if q == nil {
		return ""
	}
	return short(q.P50) + " / " + short(q.P99) + " / " + short(q.Max)
}

func p99(q *verdict.Quantiles) string {
	if q == nil {
		return ""
	}
	return short(q.P99)
}

// short writes two significant digits, or all before the point, in groups of three.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1000:
		return format.Thousands(uint64(math.Round(a)))
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a == 0:
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}
