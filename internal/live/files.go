package live

import (
	"fmt"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/report/html"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Files is the page of a run that goes on elsewhere, by the files that its runners write meanwhile: each is some seconds old.
// The zero value shows that there is none yet.
type Files struct {
	Location string // of the files, as the user wrote it

	clocks    func() time.Time // nil: time.Now
	mu        sync.Mutex
	verdict   *verdict.Verdict
	merged    *shard.Merged
	timelines html.Section
	axis      html.Axis
	says      string
}

// late is how old the last checkpoint of a runner may be before that is worth a word: it writes one every 30 s.
const late = 75 * time.Second

// Show takes what the files hold now. The verdict of a run that is not over proves nothing, and is not shown.
func (f *Files) Show(v *verdict.Verdict, m *shard.Merged, samples []resources.Sample) {
	section, axis := html.Timelines(&html.Run{Verdict: v, Merged: m, Samples: samples}, v.Layout.Declared && v.Plan.Connections == 0)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.verdict, f.merged, f.timelines, f.axis, f.says = v, m, section, axis, ""
}

// Say shows a sentence beside what the files held last; "" for none.
func (f *Files) Say(sentence string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.says = sentence
}

// Page is the page as it is now; it is always whole.
func (f *Files) Page(bool) *html.Live {
	now := time.Now()
	if f.clocks != nil {
		now = f.clocks()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &html.Live{Page: html.Page{Title: "soak " + f.Location, Time: f.axis}}
	out.Time.Step = int64(shard.BucketWidth / time.Second)
	out.Banner = html.Banner{Word: "WAITING", Tone: html.Neutral, Name: out.Title, Reasons: []string{"no runner has written anything yet"}}
	out.Clock = "looked at " + now.UTC().Format(time.TimeOnly) + " UTC"
	empty := html.Section{ID: "found", Title: "What was found", Short: "Found", Lead: []string{"Nothing yet."}}
	runners := html.Section{ID: "runners", Title: "Runners", Lead: []string{"None has written anything yet."}}
	out.Sections = []html.Section{empty, {ID: "timelines", Title: "Timelines", Lead: []string{"The first points come with the first checkpoints."}}, runners}
	if f.verdict != nil {
		f.fill(out, now)
	}
	if out.Banner.Tiles == nil {
		out.Banner.Tiles = []html.Tile{}
	}
	if f.says != "" {
		out.Banner.Reasons = append(out.Banner.Reasons, f.says)
	}
	return out
}

// fill lays out what the files hold.
func (f *Files) fill(out *html.Live, now time.Time) {
	v, m := f.verdict, f.merged
	view := View{About: About{Plan: v.Plan, Service: m.Service, Declared: v.Layout.Declared, Total: v.Plan.Hold()}}
	sum := sumOf(m)
	out.Title = v.Layout.Title + " " + v.TestID
	soFar, lost := view.soFar(&sum)
	out.Banner = html.Banner{Word: "RUNNING", Tone: html.Neutral, Name: out.Title, Reasons: []string{soFar}, Tiles: view.tiles(&sum, m.Lateness)}
	if lost {
		out.Banner.Tone = html.Bad
	}
	if v.Plan.Connections > 0 {
		passed := min(max(now.Sub(time.UnixMilli(int64(v.StartedUnix*1000))), 0), view.Total).Truncate(time.Second)
		out.Share, out.Clock = float64(passed)/float64(max(view.Total, 1)), format.Duration(passed)+" of "+format.Duration(view.Total)
	}
	table, doubts, over := f.runners(now)
	if over {
		out.Banner.Word = "ENDED"
	}
	if len(doubts) > 0 && !lost {
		out.Banner.Tone = html.Doubt
	}
	out.Banner.Reasons = append(out.Banner.Reasons, doubts...)
	if len(f.timelines.Charts) > 0 {
		out.Sections[1] = f.timelines
	}
	out.Sections[2].Lead, out.Sections[2].Tables = nil, []html.Table{table}
	if n := len(v.Groups); n > 0 {
		found := html.Table{Columns: []html.Column{{Name: "UTC"}, {Name: "connections", Number: true}, {Name: "what"}}}
		for _, g := range v.Groups[:min(n, mostShown)] {
			at := time.UnixMilli(int64(g.FirstUnix * 1000)).UTC().Format(time.TimeOnly)
			found.Rows = append(found.Rows, html.Row{{Text: at, At: g.FirstUnix}, {Text: format.Thousands(g.Connections)}, {Text: g.Text}})
		}
		out.Sections[0].Lead, out.Sections[0].Tables = nil, []html.Table{found}
		if n > mostShown {
			out.Sections[0].Notes = []string{format.Count(n-mostShown, "group") + " more: the report lists all."}
		}
	}
}

// sumOf is what all runners had counted when each wrote its file.
func sumOf(m *shard.Merged) (sum shard.Progress) {
	interval := m.Plan.Interval()
	for _, c := range m.Connections.All() {
		sum.Count(&c.Record)
		if c.State != ledger.Open {
			continue
		}
		sum.Open++
		r := m.Runners[c.Runner]
		silent := time.Duration(r.EndedUS-r.StartedUS)*time.Microsecond - c.LastAt - m.Plan.Late()
		if r.State == shard.Running && m.Service.ByInterval() && interval > 0 && silent >= interval {
			sum.Undecided += clamp.Uint64(int64(silent / interval))
		}
	}
	return sum
}

// runners is the table of the runners, with sentences on those that are not well; over: all that the plan has have ended.
func (f *Files) runners(now time.Time) (t html.Table, doubts []string, over bool) {
	t.Columns = []html.Column{{Name: "runner"}, {Name: "host"}, {Name: "state"}, {Name: "checkpoint"}, {Name: "received", Number: true}, {Name: "missed", Number: true}, {Name: "memory", Number: true}}
	counted := map[int]ledger.Totals{}
	for _, r := range f.verdict.Runners {
		counted[r.Index] = r.Totals
	}
	over = len(f.merged.Runners) >= f.merged.Plan.Runners
	for i := range f.merged.Runners {
		r := &f.merged.Runners[i]
		age := now.Sub(time.UnixMicro(r.EndedUS)).Truncate(time.Second)
		state, when := html.Cell{Text: string(r.State)}, html.Cell{Text: format.Duration(max(age, 0)) + " ago"}
		switch {
		case r.State == shard.Running && age > late:
			when.Tone = html.Doubt
			doubts = append(doubts, fmt.Sprintf("runner %d wrote its last checkpoint %s ago", r.Index, format.Duration(age)))
		case r.State == shard.Interrupted, r.State == shard.Aborted:
			state.Tone = html.Doubt
			doubts = append(doubts, fmt.Sprintf("runner %d was %s", r.Index, r.State))
		}
		over = over && r.State != shard.Running
		c := counted[r.Index]
		t.Rows = append(t.Rows, html.Row{
			{Text: fmt.Sprint(r.Index)}, {Text: r.Host}, state, when, {Text: format.Thousands(c.Received)}, {Text: format.Thousands(c.Missed)}, {Text: format.Bytes(r.RSSMax)},
		})
	}
	if missing := f.merged.Plan.Runners - len(f.merged.Runners); missing > 0 {
		doubts = append(doubts, format.Count(missing, "runner")+" of the plan wrote nothing yet")
	}
	return t, doubts, over
}

// Over says that all runners of the plan have ended.
func (f *Files) Over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.verdict == nil {
		return false
	}
	_, _, over := f.runners(time.Now())
	return over
}
