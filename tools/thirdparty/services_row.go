package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/tools/page"
)

// A row has the figures of one service. The figures of the run are copied from verdict.json.
type row struct {
	Service  string          `json:"service"`
	Version  string          `json:"version,omitempty"`
	Settings string          `json:"settings,omitempty"`
	Start    string          `json:"start"`              // in RFC 3339
	Verdict  verdict.Outcome `json:"verdict"`            // "": no verdict
	Findings []string        `json:"findings,omitempty"` // reasons for not passing, or the error of the measurement
	Tables   []verdict.Table `json:"tables,omitempty"`   // tables of the suite

	Opened    int                `json:"streams_opened"`
	Messages  verdict.Messages   `json:"messages"`
	LatencyMS *verdict.Latency   `json:"latency_ms,omitempty"`
	ConnectMS *verdict.Quantiles `json:"connect_ms,omitempty"`
	Generator verdict.Generator  `json:"generator"`
	Cost      Cost               `json:"cost"`

	start, end time.Time
}

func (r *row) read(run string) error {
	text, err := os.ReadFile(filepath.Join(run, results.VerdictFile))
	if err != nil {
		return err
	}
	var v verdict.Verdict
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("read the verdict of the run: %w", err)
	}
	r.Verdict, r.Tables, r.Opened, r.Generator = v.Verdict, v.Tables, v.Connections.Opened, v.Generator
	r.Messages, r.LatencyMS = v.Messages, v.LatencyMS
	if v.ConnectMS != (verdict.Quantiles{}) {
		r.ConnectMS = &v.ConnectMS
	}
	if v.StartedUnix > 0 {
		r.start, r.end = timeOf(v.StartedUnix), timeOf(v.EndedUnix)
	}
	if v.Verdict == verdict.Pass {
		return nil
	}
	if len(v.Reasons) > 0 { // further reasons, of which there may be thousands, mostly concern other streams
		r.Findings = append(r.Findings, v.Reasons[0])
	}
	for _, c := range v.Checks {
		if !c.Pass && !c.Unjudged {
			r.Findings = append(r.Findings, fmt.Sprintf("%s: %s (limit: %s)", c.Name, c.Actual, c.Limit))
		}
	}
	return nil
}

func timeOf(unix float64) time.Time { return time.UnixMicro(int64(unix * 1e6)) }

// window returns the time span in which all streams were open and received messages. It excludes the start, because
// opening a stream costs a service more than keeping it open. It also excludes the last seconds, in which the run does not
// publish.
func (r *row) window() (from, to time.Time) {
	return r.start.Add(min(30*time.Second, r.end.Sub(r.start)/4)), r.end.Add(-3 * time.Second)
}

func (r *row) outcome() string {
	if len(r.Findings) == 0 {
		return fmt.Sprintf("%s, %d of %d messages", r.Verdict, r.Messages.Received, r.Messages.Expected)
	}
	return strings.TrimSpace(string(r.Verdict) + " " + r.Findings[0])
}

// seconds returns the duration in seconds for which the streams received messages.
func (r *row) seconds() float64 {
	if p := r.Messages.Published; p != nil && p.Rate > 0 {
		return float64(p.Planned) / p.Rate
	}
	return r.end.Sub(r.start).Seconds()
}

func (r *row) costs() []string {
	out := []string{"", "", "", "", "", formatP99(r.ConnectMS), "", ""}
	if r.Verdict != "" {
		out[6] = formatNumber(100 * r.Generator.CPUSeconds / r.end.Sub(r.start).Seconds())
		if r.Generator.Saturated {
			out[6] += ", saturated"
		}
	}
	c := r.Cost
	if c.WindowS == 0 {
		return out
	}
	cores := c.CPUSeconds / c.WindowS
	out[1], out[2], out[7] = formatNumber(float64(c.IdleBytes)/(1<<20)), formatNumber(100*cores), formatNumber(c.Load)
	if streams := float64(r.Opened); streams > 0 {
		out[0], out[4] = formatNumber((float64(c.MedianBytes)-float64(c.IdleBytes))/streams/1024), formatNumber(cores/streams*3600)
	}
	if r.Messages.Received > 0 {
		out[3] = formatNumber(1e6 * cores * r.seconds() / float64(r.Messages.Received))
	}
	return out
}

func (b *servicesBench) write(w io.Writer) error {
	l := b.Load
	if b.Suite != "" {
		fmt.Fprintf(w, "`soak run %s`: ", b.Suite)
	}
	fmt.Fprintf(w, "%s, %s, %g messages/s (one per stream every %g s), %d s each, one service at a time. %s.\n\n",
		format.Plural(l.Connections, "stream", "streams"), format.Plural(l.Topics, "topic", "topics"), l.Rate, l.interval(), l.Seconds, page.Origin(b.RunInfo, b.Date))
	b.table(w, "verdict, received, missing, duplicate, reordered, published → received (ms: p50 / p99 / max), published → last subscriber (ms: p50 / p99 / max), response to publish (ms: p99)", func(row *row) []string {
		m, latency, answer := row.Messages, "", ""
		if row.LatencyMS != nil {
			latency = formatQuantiles(&row.LatencyMS.Quantiles)
		}
		if m.Published != nil {
			answer = formatP99(&m.Published.ResponseMS)
		}
		return []string{
			cmp.Or(string(row.Verdict), "not measured"), row.count(m.Received), row.count(m.Missed), row.count(m.Duplicated + m.Repeated), row.count(m.Reordered),
			latency, formatQuantiles(m.LastSubscriberMS), answer,
		}
	})
	b.writeTables(w)
	b.table(w, "memory per stream (KB), idle memory (MB), CPU (% of a core), CPU per message (µs), CPU per stream and hour (s), connect (ms: p99), load generator CPU (% of a core), load average", (*row).costs)
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
