package live

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/report/html"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// maxListed is the maximum number of findings on the page. The report covers all findings, in groups.
const maxListed = 100

// A Header is the part of the page that does not change during a run.
type Header struct {
	Plan     plan.Plan
	Title    string // such as "soak 20261122-140000"
	Service  shard.Service
	Declared bool          // the script declares the load: see verdict.Layout
	Total    time.Duration // approximate length of the run
	Machine  resources.Machine
	// Prometheus is the address of the metrics of the run; "": none. WritesMetrics reports whether the runners write
	// metrics to Prometheus.
	Prometheus    string
	WritesMetrics bool
}

type state struct {
	*Header
	now      time.Time
	started  time.Time // start of the runners; zero: not yet
	word     string    // first word of the banner
	notes    []string
	runners  []Runner
	findings []Finding // the newest first
	omitted  int       // number of findings that are not listed
}

// page returns the page of the state, without the charts.
func (s *state) page() *html.LivePage {
	sum, lateness := total(s.runners)
	out := &html.LivePage{Page: report.Page{Title: s.Title}, Links: s.links()}
	out.Banner = s.banner(&sum)
	out.Banner.Tiles = s.tiles(&sum, lateness)
	out.Share, out.Clock = s.clock()
	out.Sections = []report.Section{s.findingsSection(), {ID: "timelines", Title: "Timelines"}, s.health(s.makesRequests(&sum))}
	return out
}

func (s *state) banner(sum *shard.Progress) report.Banner {
	b := report.Banner{Word: s.word, Tone: report.Neutral, Name: s.Title, About: []string{s.Plan.BackendURL}}
	if s.Plan.BackendURL == "" {
		b.About = nil
	}
	sentence, lost := s.interimResult(sum)
	b.Sentence = sentence
	switch {
	case lost:
		b.Tone = report.Bad
	case !s.Service.CountsMessages():
		b.Tone = report.Doubt
	}
	for i := range s.runners {
		if text, healthy := s.runners[i].Health(s.now); !healthy {
			b.Findings = append(b.Findings, fmt.Sprintf("runner %d: %s", s.runners[i].Index, text))
		}
	}
	if len(b.Findings) > 0 && b.Tone == report.Neutral {
		b.Tone = report.Doubt
	}
	b.Findings = append(b.Findings, s.notes...)
	return b
}

// interimResult describes the result so far, which may become worse but not better. lost reports losses. A script that
// declares its load may disconnect streams, so with such a script only missing and faulty messages are losses.
func (s *state) interimResult(sum *shard.Progress) (words string, lost bool) {
	if s.makesRequests(sum) {
		return format.Count(sum.Requests, "request") + " so far", false
	}
	var parts []string
	for _, count := range []struct {
		n    uint64
		text string
	}{
		{sum.Missed(), format.Form(sum.Missed(), s.Service.Noun(), s.nouns()) + " missed"}, {sum.Faults(), format.Form(sum.Faults(), s.Service.Noun(), s.nouns()) + " faulty"},
		{clamp.Uint64(sum.Dropped), "dropped"}, {clamp.Uint64(sum.Refused), "refused"},
	} {
		if count.n > 0 {
			parts = append(parts, format.Thousands(count.n)+" "+count.text)
		}
	}
	lost = sum.Missed()+sum.Faults() > 0 || !s.Declared && len(parts) > 0
	switch {
	case !s.Service.CountsMessages():
		parts = append(parts, "messages are not checked")
	case len(parts) == 0 && sum.Received == 0:
		parts = append(parts, "nothing received yet")
	case len(parts) == 0:
		parts = append(parts, "nothing lost yet")
	}
	if sum.Undecided > 0 {
		parts = append(parts, format.Thousands(sum.Undecided)+" undecided")
	}
	if sum.Reconnected > 0 {
		parts = append(parts, format.Count(sum.Reconnected, "reconnect"))
	}
	return strings.Join(parts, ", "), lost
}

func (s *state) nouns() string { return s.Service.Noun() + "s" }

// makesRequests reports whether the run makes requests and opens no streams.
func (s *state) makesRequests(sum *shard.Progress) bool {
	return s.Plan.Connections == 0 && sum.Opened == 0
}

func (s *state) tiles(sum *shard.Progress, lateness *shard.Histogram) []report.Tile {
	if s.makesRequests(sum) {
		return []report.Tile{
			{Name: "requests", Value: format.Thousands(sum.Requests), Note: sum.Stage}, {Name: "failed", Value: format.Thousands(sum.Failed)},
		}
	}
	open := report.Tile{Name: "streams open", Value: format.Thousands(max(sum.Open, 0))}
	if s.Plan.Connections > 0 {
		open.Note = "of " + format.Thousands(s.Plan.Connections) + " planned"
	}
	if !s.Service.CountsMessages() {
		return []report.Tile{open, {Name: s.nouns(), Value: "not checked", Note: format.Count(sum.Heartbeats, "heartbeat"), Tone: report.Doubt}}
	}
	missed := report.Tile{Name: s.nouns() + " missed", Value: format.Thousands(sum.Missed()), Note: format.Thousands(sum.Faults()) + " faulty"}
	switch faults := sum.Missed() + sum.Faults(); {
	case faults > 0:
		missed.Tone = report.Bad
	case sum.Received == 0:
		missed.Value, missed.Note = "–", "nothing was received yet"
	}
	lateTile := "lateness p99"
	if s.Service.ComparesClients() {
		lateTile = "spread p99"
	}
	late := report.Tile{Name: lateTile, Value: "–", Note: "nothing was received yet"}
	if lateness.Count() > 0 {
		late.Value, late.Note = format.Duration(lateness.Quantile(.99)), "at most "+format.Duration(lateness.Max())
	}
	out := []report.Tile{
		open,
		{Name: s.nouns() + " received", Value: format.Thousands(sum.Received), Note: format.Thousands(sum.Late) + " late"},
		missed,
		{Name: "undecided", Value: format.Thousands(sum.Undecided), Note: "due, and may still arrive"},
		late,
	}
	if sum.Published > 0 {
		out = append(out, report.Tile{Name: "published", Value: format.Thousands(sum.Published), Note: format.Thousands(sum.Confirmed) + " confirmed"})
	}
	return out
}

func (s *state) clock() (share float64, words string) {
	if s.started.IsZero() {
		return 0, "the runners are starting"
	}
	elapsed := min(max(s.now.Sub(s.started), 0), s.Total).Truncate(time.Second)
	return float64(elapsed) / float64(max(s.Total, 1)), format.Duration(elapsed) + " of " + format.Duration(s.Total)
}

func (s *state) findingsSection() report.Section {
	out := report.Section{ID: "findings", Title: "Findings"}
	if len(s.findings)+s.omitted == 0 {
		out.Lead = []string{"Nothing yet."}
		return out
	}
	t := report.Table{Columns: report.Columns("UTC", "runner", "client", "finding")}
	findings := s.findings[:min(len(s.findings), maxListed)]
	for _, f := range findings {
		row := report.Cells(f.At.UTC().Format(time.TimeOnly), "–", "–", f.Text)
		row[0].At = float64(f.At.Unix())
		if f.Runner > 0 {
			row[1].Text = fmt.Sprint(f.Runner)
		}
		if f.ID != "" {
			row[2].Text = f.ID
		}
		t.Rows = append(t.Rows, row)
	}
	out.Tables = []report.Table{t}
	if unlisted := s.omitted + len(s.findings) - len(findings); unlisted > 0 {
		out.Notes = []string{format.Plural(unlisted, "more finding is", "more findings are") + " not listed here; the report covers all findings."}
	}
	return out
}

func (s *state) health(requests bool) report.Section {
	out := report.Section{ID: "runners", Title: "Runners"}
	numbers := []string{"#open", "#received", "#missed", "#undecided", "#late p99"}
	if requests {
		numbers = []string{"#requests", "#failed"}
	}
	t := report.Table{Columns: report.Columns(append(append([]string{"runner", "state"}, numbers...), "#CPU", "#memory")...)}
	if !requests {
		t.Note = fmt.Sprintf("late p99 covers the last 5 s (1 s in a run of at most 2 min) in which a message arrived; the bars show the last %d of these values, from 1 ms to 1 s", latenessBuckets)
	}
	for i := range s.runners {
		r := &s.runners[i]
		text, healthy := r.Health(s.now)
		row := report.Cells(fmt.Sprint(r.Index), text)
		row[0].Note = r.Host
		if !healthy {
			row[1].Tone = report.Doubt
		}
		if requests {
			row = append(row, report.Cells(format.Thousands(r.Requests), format.Thousands(r.Failed))...)
		} else {
			row = append(row, r.counts()...)
		}
		cpu, memory := "–", "–"
		if r.Process.RSS > 0 {
			cpu, memory = format.Percent(r.Process.CPUPercent), format.Bytes(r.Process.RSS)
		}
		t.Rows = append(t.Rows, append(row, report.Cells(cpu, memory)...))
	}
	if len(s.runners) == 0 {
		out.Lead = []string{"No runner has reported yet."}
		return out
	}
	out.Tables = []report.Table{t}
	return out
}

func (r *Runner) counts() report.Row {
	row := report.Cells(format.Thousands(max(r.Open, 0)), format.Thousands(r.Received), format.Thousands(r.Missed()), format.Thousands(r.Undecided), "–")
	if r.Missed() > 0 {
		row[2].Tone = report.Bad
	}
	if late, ok := r.LastLate(); ok {
		row[4] = report.Cell{Text: format.Duration(late), Spark: report.SparkOf(r.Late)}
	}
	return row
}

// LastLate returns the p99 of lateness in the last bucket in which a message arrived. ok is false if Late has
// no such bucket.
func (r *Runner) LastLate() (late time.Duration, ok bool) {
	for _, late := range slices.Backward(r.Late) {
		if late >= 0 {
			return late, true
		}
	}
	return 0, false
}

// links returns links to the metrics of the run, without the user and the password in the address.
func (h *Header) links() (out []html.Link) {
	at, err := url.Parse(h.Prometheus)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil
	}
	base := at.Scheme + "://" + at.Host + strings.TrimSuffix(at.EscapedPath(), "/")
	if h.WritesMetrics {
		run := fmt.Sprintf("{testid=%q}", h.Plan.TestID)
		for _, metric := range []html.Link{
			{Name: "events received", URL: "sum by (runner) (rate(k6_sse_event_total" + run + "[1m]))"},
			{Name: "lateness", URL: "k6_soak_lateness_p99_seconds" + run},
			{Name: "memory of the runners", URL: "k6_soak_rss_bytes" + run},
		} {
			query := url.Values{"g0.expr": {metric.URL}, "g0.tab": {"0"}, "g0.range_input": {"1h"}}
			out = append(out, html.Link{Name: metric.Name, URL: base + "/graph?" + query.Encode()})
		}
	}
	return append(out, html.Link{Name: "all metrics", URL: base + "/"})
}
