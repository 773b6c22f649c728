package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// ConnectionsCSV writes a row for each client, with its listed findings and the number of unlisted ones.
func ConnectionsCSV(w io.Writer, m *shard.Merged, v *verdict.Verdict) error {
	out := rowWriter{Writer: csv.NewWriter(w)}
	header := []any{"id", "runner", "state", "reason", "opened_unix_s", "closed_unix_s", "connect_ms", "stream_s", "streams"}
	for _, n := range (ledger.Totals{}).Each() {
		header = append(header, n.Name)
	}
	header = append(header,
		"max_gap_ms", "max_lateness_ms", "reconnects", "findings", "open_s", "outage_s", "longest_outage_s", "attempts", "refused_attempts",
	)
	header = append(header, messageHeader...)
	out.row(header...)
	formatter := verdict.Formatter{Merged: m}
	var values []any
	for _, c := range v.Records() {
		runner := m.Runners[c.Runner]
		var findings []string
		for _, f := range c.Findings {
			findings = append(findings, formatter.Sentence(c, f, runner.At(f.At)))
		}
		if c.Unlisted > 0 {
			findings = append(findings, fmt.Sprintf("and %d more", c.Unlisted))
		}
		values = append(values[:0],
			cell(c.ID), runner.Index, cell(string(c.State)), cell(c.Reason),
			stamp(c.Streams > 0, runner.At(c.OpenedAt)), stamp(c.ClosedAt > 0, runner.At(c.ClosedAt)),
			decimals(c.Connect, time.Millisecond), decimals(c.StreamTime, time.Second), c.Streams,
		)
		for _, n := range c.Totals().Each() {
			values = append(values, n.Count)
		}
		values = append(values,
			decimals(c.MaxGap, time.Millisecond), decimals(c.MaxLateness, time.Millisecond),
			outages(c, runner), cell(strings.Join(findings, "; ")),
			decimals(c.OpenTime, time.Second), decimals(c.OutageTime, time.Second), decimals(c.Longest.To-c.Longest.From, time.Second),
			c.Attempts, cell(attempts(c)),
		)
		values = appendMessageCells(values, m, c)
		out.row(values...)
	}
	out.Flush()
	return out.Error()
}

// cell returns text for a cell. It prevents a spreadsheet from interpreting the text as a formula (CWE-1236).
func cell(text string) string {
	if first, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + text
	}
	return text
}

func outages(c *shard.Connection, r shard.Runner) string {
	var out []string
	for _, o := range c.Outages {
		out = append(out, fmt.Sprintf("%s for %s", r.At(o.From).UTC().Format("15:04:05.000"), (o.To-o.From).Round(time.Millisecond)))
	}
	if omitted := c.Survived - len(c.Outages); omitted > 0 {
		out = append(out, fmt.Sprintf("and %d more", omitted))
	}
	return strings.Join(out, "; ")
}

func attempts(c *shard.Connection) string {
	var out []string
	for _, f := range c.Refusals {
		out = append(out, fmt.Sprintf("%s: %d", f.Reason, f.Count))
	}
	return strings.Join(out, "; ")
}

// SeriesCSV writes a row for each bucket of five seconds, or of one second in a short run: clients, processes, host,
// and published messages. A run without clients has no columns of clients. As in a verdict.Window, the number of faults
// is the higher of two counts: the listed findings, and the faults that the runners detected.
func SeriesCSV(w io.Writer, m *shard.Merged, v *verdict.Verdict, samples []resources.Sample) error {
	out := rowWriter{Writer: csv.NewWriter(w)}
	prefix := "lateness"
	if !m.Service.HasInterval() {
		prefix = "latency"
	}
	if m.Service.ComparesClients() {
		prefix = "spread"
	}
	buckets, width := m.Timeline()
	step := int64(width / time.Second)
	published := publishedByBucket(m, step)
	faults := v.FaultsByPeriod(func(unix int64) int64 { return unix / step * step })
	header := []any{"unix_s"}
	hasClients := m.Plan.Connections > 0
	if hasClients {
		header = append(header, "open", "opened", "closed", m.Service.Noun()+"s", "late", "faults", prefix+"_p50_ms", prefix+"_p99_ms", prefix+"_max_ms")
	}
	header = append(header,
		"runner_rss_bytes", "runner_heap_live_bytes", "runner_cpu_percent", "runner_goroutines", "runner_gc_pause_us", "runner_run_delay_ms", "runner_stall_ms",
		"backend_rss_bytes", "backend_cpu_percent", "backend_streams_open", "backend_goroutines", "backend_open_fds",
		"nginx_rss_bytes", "nginx_cpu_percent",
		"runner_threads", "backend_threads", "nginx_threads", "host_network_received_bytes", "host_network_sent_bytes", "dns_lookup_ms",
	)
	if published != nil {
		header = append(header, "published", "confirmed")
	}
	out.row(header...)
	next := 0
	for _, b := range buckets {
		var current, previous resources.Sample
		for next < len(samples) && samples[next].Unix < b.Unix+step {
			next++
		}
		if next > 0 && samples[next-1].Unix >= b.Unix-step { // an older sample is not repeated
			current = samples[next-1]
		}
		if next > 1 {
			previous = samples[next-2]
		}
		values := []any{b.Unix}
		if hasClients {
			p50, p99, maximum := latenessCells(b)
			values = append(values, b.Open, b.Opened, b.Closed, b.Noops, b.Late, max(b.Faults, faults[b.Unix]), p50, p99, maximum)
		}
		values = append(values,
			b.RSS, b.HeapLive, oneDecimal(b.CPUPercent), b.Goroutines, b.GCPauseUS, b.RunDelayMS, b.StallMS,
			current.BackendRSS, rate(previous.BackendCPU, current.BackendCPU, previous.Unix, current.Unix), current.Streams, current.Goroutines, current.Files,
			current.NginxRSS, rate(previous.NginxCPU, current.NginxCPU, previous.Unix, current.Unix),
			b.Threads, current.BackendThreads, current.NginxThreads, current.Received, current.Transmitted, current.LookupMS,
		)
		if published != nil {
			values = append(values, published[b.Unix].sent, published[b.Unix].confirmed)
		}
		out.row(values...)
	}
	out.Flush()
	return out.Error()
}

// A rowWriter writes the rows of a CSV file. The method Error returns any write error.
type rowWriter struct {
	*csv.Writer
	cells []string // cells of the last row; reused, because a file may have a million rows
}

// row writes values as fmt.Sprint formats them.
func (w *rowWriter) row(values ...any) {
	w.cells = w.cells[:0]
	for _, v := range values {
		var text string
		switch v := v.(type) { // fmt would account for most of the time of a million rows
		case string:
			text = v
		case int:
			text = strconv.Itoa(v)
		case uint64:
			text = strconv.FormatUint(v, 10)
		default:
			text = fmt.Sprint(v)
		}
		w.cells = append(w.cells, text)
	}
	_ = w.Write(w.cells)
}

// latenessCells returns the lateness of a bucket; empty if no message arrived, because 0 would mean on time.
func latenessCells(b shard.Bucket) (p50, p99, maximum string) {
	h := lateness(b)
	if h == nil {
		return "", "", ""
	}
	return decimals(h.Quantile(.5), time.Millisecond), decimals(h.Quantile(.99), time.Millisecond), decimals(h.Max(), time.Millisecond)
}

// rate returns the CPU usage between two samples in percent of a core, or "" if it is not known: no sample, a counter
// of 0, or a new process.
func rate(first, last float64, from, to int64) string {
	if to <= from || from == 0 || first == 0 || last < first {
		return ""
	}
	return oneDecimal(100 * (last - first) / float64(to-from))
}

func oneDecimal(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func decimals(d, unit time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(unit), 'f', 3, 64)
}

func stamp(known bool, t time.Time) string {
	if !known {
		return ""
	}
	return strconv.FormatFloat(float64(t.UnixMicro())/1e6, 'f', 6, 64)
}

// CutsCSV writes a row for each disconnect and pause that the run made. The cell of a step that did not happen is
// empty.
func CutsCSV(w io.Writer, m *shard.Merged, v *verdict.Verdict) error {
	out := rowWriter{Writer: csv.NewWriter(w)}
	out.row("id", "runner", "cut", "at_unix_s", "last_number", "ended_the_stream", "reconnected_unix_s", "resume_requested", "next_unix_s", "next_number", "outage_s",
		"lost", "duplicated", "repeated", "announced")
	for r, c := range v.AllCuts() {
		runner := m.Runners[r.Runner]
		outage := ""
		if d, ok := c.Interruption(); ok {
			outage = decimals(d, time.Second)
		}
		out.row(cell(r.ID), runner.Index, cell(c.Kind), stamp(true, runner.At(c.At)), number(c.LastNumber), c.Lost, stamp(c.ReconnectedAt > 0, runner.At(c.ReconnectedAt)), c.ResumeRequested,
			stamp(c.NextAt > 0, runner.At(c.NextAt)), number(c.Next), outage, c.Missed, c.Duplicated, c.Repeated, c.Announced)
	}
	out.Flush()
	return out.Error()
}

// messageHeader names the columns of connections.csv about the messages of a client and about other events.
var messageHeader = []any{"topic", "first", "last", "heartbeats", "foreign", "repeated", "announced_gaps", "uncounted", "max_silence_s", "misrouted"}

func appendMessageCells(values []any, m *shard.Merged, c *shard.Connection) []any {
	topic, _, published := m.Topic(c)
	if !published {
		topic, _ = m.FeedTopic(c)
	}
	return append(values,
		cell(topic), number(c.First), number(c.Last), c.Heartbeats, c.Foreign, c.Repeated, c.AnnouncedGaps, c.Uncounted, silence(c), c.Misrouted,
	)
}

func silence(c *shard.Connection) any {
	if c.MaxSilence == 0 {
		return ""
	}
	return decimals(c.MaxSilence, time.Second)
}

func number(n uint64) any {
	if n == 0 {
		return ""
	}
	return n
}

type publishedCount struct{ sent, confirmed int }

// publishedByBucket counts the published messages by the start of their bucket, which is width seconds long. It returns
// nil if the run has no publisher.
func publishedByBucket(m *shard.Merged, width int64) map[int64]publishedCount {
	publishers := m.Publishers()
	if len(publishers) == 0 {
		return nil
	}
	out := map[int64]publishedCount{}
	for _, p := range publishers {
		for k := range p.Topics {
			for _, message := range p.Topic(k) {
				at := message.SentUS / 1e6 / width * width
				sum := out[at]
				sum.sent++
				if message.State == shard.Confirmed {
					sum.confirmed++
				}
				out[at] = sum
			}
		}
	}
	return out
}

// TableFile returns the file name of a table: latency-of-good-responses-ms.csv for "Latency of good responses, ms".
func TableFile(t *verdict.Table) string {
	words := strings.FieldsFunc(strings.ToLower(t.Title), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "-") + ".csv"
}

// TableCSV writes a table of a suite for a spreadsheet. It removes the thousands separators from numbers.
func TableCSV(w io.Writer, t *verdict.Table) error {
	out := csv.NewWriter(w)
	header := make([]string, len(t.Columns))
	for i, text := range t.Columns {
		header[i] = cell(text)
	}
	_ = out.Write(header) // out.Error returns any write error
	for _, cells := range t.Rows {
		escaped := make([]string, len(cells))
		for i, text := range cells {
			if t.Numeric(i) {
				escaped[i] = strings.ReplaceAll(text, ",", "")
			} else {
				escaped[i] = cell(text)
			}
		}
		_ = out.Write(escaped)
	}
	out.Flush()
	return out.Error()
}
