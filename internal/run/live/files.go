package live

import (
	"slices"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/report/html"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Files makes the page of another session's run from the files of the runners. The zero value has no files.
type Files struct {
	Location string // location of the files, as the user wrote it

	clock   func() time.Time // nil: time.Now
	mu      sync.Mutex
	verdict *verdict.Verdict
	merged  *shard.Merged
	runners []Runner
	charts  report.Section
	axis    report.Axis
	notice  string // sentence below the banner; "": none
}

// checkpointTolerance is the time by which a checkpoint may be later than planned.
const checkpointTolerance = 45 * time.Second

// Show sets the current content of the files. The page does not show the verdict, which is not final before the end of
// the run.
func (f *Files) Show(v *verdict.Verdict, m *shard.Merged, samples []resources.Sample) {
	charts, axis := report.Timelines(&report.Run{Verdict: v, Merged: m, Samples: samples})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.verdict, f.merged, f.charts, f.axis, f.notice = v, m, charts, axis, ""
	f.runners = runnersOf(m, v.Layout.Disturbed)
}

// SetNotice shows a sentence below the banner until the next Show. "" removes the sentence.
func (f *Files) SetNotice(sentence string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notice = sentence
}

// Page returns the page in its current state.
func (f *Files) Page() *html.LivePage {
	now := time.Now()
	if f.clock != nil {
		now = f.clock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := state{Header: &Header{Title: "soak " + f.Location}, now: now, word: "WAITING"}
	if f.verdict != nil {
		f.fill(&s)
	}
	if f.notice != "" {
		s.notes = append(s.notes, f.notice)
	}
	page := s.page()
	page.Sections[1].Lead = []string{"The first points appear with the first checkpoints."}
	if f.verdict == nil {
		page.Banner.Sentence, page.Banner.Tiles = "no runner has written data yet", nil
		return page
	}
	if page.Time = f.axis; len(f.charts.Charts) > 0 {
		page.Sections[1] = f.charts
	}
	return page
}

func (f *Files) fill(s *state) {
	v := f.verdict
	*s.Header = Header{Plan: v.Plan, Title: v.Layout.Title + " " + v.TestID, Service: f.merged.Service, Declared: v.Layout.Declared, Total: v.Plan.Hold()}
	s.word, s.runners = "RUNNING", f.runners
	s.started = time.UnixMilli(int64(v.StartedUnix * 1000))
	if f.ended() {
		s.word = "ENDED"
	}
	if missing := f.merged.Plan.Runners - len(f.currentRunners()); missing > 0 {
		s.notes = append(s.notes, format.Plural(missing, "runner of the plan has", "runners of the plan have")+" not written data yet")
	}
	for _, g := range slices.Backward(v.Groups) {
		s.findings = append(s.findings, Finding{At: time.UnixMilli(int64(g.FirstUnix * 1000)), Runner: g.Runner, Text: g.Text})
	}
}

// runnersOf returns the state of each runner according to its shard. disturbed may be nil; see verdict.Layout.
func runnersOf(m *shard.Merged, disturbed []bool) []Runner {
	out := make([]Runner, len(m.Runners))
	for i := range m.Runners {
		r := &m.Runners[i]
		tolerance := checkpointTolerance + shard.CheckpointInterval(time.Duration(r.EndedUS-r.StartedUS)*time.Microsecond)
		out[i] = Runner{Index: r.Index, Host: r.Host, ReportedAt: time.UnixMicro(r.EndedUS), Patience: tolerance, Ended: r.State == shard.Finished || r.Replaced}
		out[i].Process = shard.ProcessUsage{RSS: r.RSSMax}
		if wall := float64(r.EndedUS-r.StartedUS) / 1e6; wall > 0 {
			out[i].Process.CPUPercent = 100 * r.CPUSeconds / wall
		}
		if r.State == shard.Interrupted || r.State == shard.Aborted {
			out[i].Trouble = string(r.State)
		}
	}
	if len(out) > 0 { // merged shards have only the sum over all runners
		out[0].Lateness = m.Lateness.Pack()
	}
	interval := m.Plan.Interval()
	for _, c := range m.Connections.All() {
		sum, r := &out[c.Runner], &m.Runners[c.Runner]
		if n, ok := m.Plan.Number(c.ID); ok && n < len(disturbed) && disturbed[n] {
			sum.CountDisturbed(&c.Record)
		} else {
			sum.Count(&c.Record)
		}
		if c.State != ledger.Open || r.Replaced {
			continue
		}
		sum.Open++
		silent := time.Duration(r.EndedUS-r.StartedUS)*time.Microsecond - c.LastAt - m.Plan.LateLimit()
		if r.State == shard.Running && m.Service.HasInterval() && interval > 0 && silent >= interval {
			sum.Undecided += clamp.Uint64(int64(silent / interval))
		}
	}
	return out
}

// Ended reports whether all runners of the plan have ended.
func (f *Files) Ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended()
}

// ended is Ended for a caller that holds mu.
func (f *Files) ended() bool {
	if f.verdict == nil {
		return false
	}
	current := f.currentRunners()
	return len(current) >= f.merged.Plan.Runners && !slices.ContainsFunc(current, func(r shard.Runner) bool { return r.State == shard.Running })
}

// currentRunners returns the runners that no other runner has replaced.
func (f *Files) currentRunners() []shard.Runner {
	return slices.DeleteFunc(slices.Clone(f.merged.Runners), func(r shard.Runner) bool { return r.Replaced })
}
