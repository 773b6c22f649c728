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
	"github.com/sse-soak/sse-soak/tools/whatran"
)

// write makes the tables, in Markdown.
func (r *report) write(w io.Writer) error {
	var s strings.Builder
	m, l := r.Machine, r.Load
	if r.Suite != "" {
		fmt.Fprintf(&s, "`soak run %s`: ", r.Suite)
	}
	fmt.Fprintf(&s, "%d streams, %d topics, %g messages/s (one per stream every %g s), %d s each, one service at a time. %s, %d cores, %s, Linux %s, %s, commit %s, %s.\n\n",
		l.Connections, l.Topics, l.Rate, l.interval(), l.Seconds, m.CPU, m.Cores, m.System, m.Kernel, m.Go, m.Commit, m.Date)
	s.WriteString("| service | verdict | received | lost | repeated | reordered | published → received, ms (p50 / p99 / max) | → last subscriber | publish answered, ms (p99) |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range r.Rows {
		line(&s, row.Service, row.named(), row.of(row.Received), row.of(row.Lost), row.of(row.Repeated), row.of(row.Reordered),
			threeOf(row.LatencyMS), threeOf(row.LastMS), p99(row.AnswerMS))
	}
	r.found(&s)
	s.WriteString("\n| service | KB per stream | idle, MB | % of a core | µs per message | CPU s per stream and hour | connect, ms (p99) | load generator, % of a core | load average |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range r.Rows {
		line(&s, row.costs()...)
	}
	s.WriteString("\n| service | version | set to | heartbeat | ends streams | resumes |\n|---|---|---|---|---|---|\n")
	for _, row := range r.Rows {
		line(&s, row.Service, row.Version, row.Settings, row.Traits.Heartbeat, row.Traits.Ends, row.Traits.Resumes)
	}
	r.findings(&s)
	_ = whatran.Write(&s, r.Ran)
	_, err := io.WriteString(w, s.String())
	return err
}

// found are the tables of the suite, each with the rows of all services.
func (r *report) found(s *strings.Builder) {
	var titles []string
	for _, of := range r.Rows {
		for _, t := range of.Tables {
			if slices.Contains(titles, t.Title) {
				continue
			}
			titles = append(titles, t.Title)
			fmt.Fprintf(s, "\n%s (%s):\n\n| service | %s |\n|---|%s\n", t.Title, t.Note, strings.Join(t.Columns, " | "), strings.Repeat("---|", len(t.Columns)))
			for _, row := range r.Rows {
				for _, same := range row.Tables {
					if same.Title != t.Title {
						continue
					}
					for _, cells := range same.Rows {
						line(s, append([]string{row.Service}, cells...)...)
					}
				}
			}
		}
	}
}

// findings are the sentences of those that did not pass.
func (r *report) findings(s *strings.Builder) {
	begun := false
	for _, row := range r.Rows {
		for _, f := range row.Findings {
			if !begun {
				s.WriteString("\nFindings:\n\n")
				begun = true
			}
			fmt.Fprintf(s, "- %s: %s\n", row.Service, strings.ReplaceAll(strings.TrimSpace(f), "\n", " "))
		}
	}
}

func line(s *strings.Builder, cells ...string) {
	for i, c := range cells {
		if c == "" {
			cells[i] = "–"
		}
	}
	fmt.Fprintf(s, "| %s |\n", strings.Join(cells, " | "))
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
	out := []string{r.Service, "", "", "", "", "", p99(r.ConnectMS), "", ""}
	if r.Verdict != "" {
		out[7] = short(r.GeneratorPercent)
		if r.Saturated {
			out[7] += ", saturated"
		}
	}
	if c := r.Cost; c.WindowS > 0 {
		out[1], out[2], out[3] = short(r.KBPerStream), short(float64(c.IdleBytes)/(1<<20)), short(r.CorePercent)
		out[4], out[5], out[8] = short(r.MicrosPerMessage), short(r.PerStreamHour), short(c.Load)
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
