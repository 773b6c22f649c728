package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A group counts ends, refusals, outages or faults with the same text.
type group struct {
	text        string
	tone        Tone
	n           int
	first, last float64
	durations   *shard.Histogram
}

// groups has one group for each text, in the order in which add first received the texts.
type groups []*group

// add counts n occurrences of a text. at and duration belong to one of them.
func (g *groups) add(text string, tone Tone, n int, at float64, duration time.Duration) {
	i := slices.IndexFunc(*g, func(entry *group) bool { return entry.text == text })
	if i < 0 {
		*g = append(*g, &group{text: text, tone: tone, first: at, last: at, durations: shard.NewHistogram()})
		i = len(*g) - 1
	}
	entry := (*g)[i]
	entry.n += n
	entry.first, entry.last = min(entry.first, at), max(entry.last, at)
	entry.durations.Record(duration)
}

func (g groups) sortByCount() groups {
	slices.SortStableFunc(g, func(a, b *group) int { return b.n - a.n })
	return g
}

// addGroups adds a table of groups. It adds no table for an empty list. Shares are relative to total; timeName names
// the durations.
func (s *Section) addGroups(g groups, caption, column, timeName string, total int) {
	t := Table{Caption: caption, Columns: Columns(column, "#count", "#share", "first seen (UTC)", "last seen (UTC)", "#"+timeName+", p50", "#p99", "#max")}
	for _, entry := range g.sortByCount() {
		row := append(Row{{Text: entry.text, Tone: entry.tone}}, Cells(format.Thousands(entry.n), format.Share(float64(entry.n), float64(total)), format.Clock(entry.first), format.Clock(entry.last))...)
		if entry.durations.Max() > 0 {
			row = append(row, timeQuantiles(entry.durations, .5, .99, 1)...)
		} else {
			row = append(row, Cells("–", "–", "–")...)
		}
		t.Rows = append(t.Rows, row)
	}
	if len(g) > 0 {
		s.Tables = append(s.Tables, t)
	}
}

func timeQuantiles(h *shard.Histogram, quantiles ...float64) (row Row) {
	for _, q := range quantiles {
		row = append(row, Cell{Text: format.Milliseconds(format.InMilliseconds(h.Quantile(q)))})
	}
	return row
}

// causes describes the client's reasons for the end of a stream. Reasons without an entry need no description.
var causes = map[string]string{
	"": "unknown reason", "idle": "went silent, closed by soak", "server": "closed by the server",
	"truncated": "closed by the server in the middle of a response",
}

func cause(reason string) string { return cmp.Or(causes[reason], reason) }

// ends returns the disconnects and errors by cause. The section is empty if all streams stayed open to the end without
// errors.
func (s *pageBuilder) ends() Section {
	out := Section{ID: "ends", Title: "Disconnects and errors, by cause", Short: "Disconnects"}
	var completed, refused, outages, faults groups
	for _, c := range s.v.Records() {
		r := s.Merged.Runners[c.Runner]
		at := func(i ledger.Instant) float64 { return format.Unix(r.At(i)) }
		reason := cause(c.Reason)
		switch c.State {
		case ledger.Refused:
			refused.add("refused: "+reason, Bad, 1, at(c.ClosedAt), c.Connect)
		case ledger.Completed:
			end, tone := s.completedText(), Good
			if c.IsDisconnected() {
				end, tone = "reconnecting when the run ended", Doubt
			}
			completed.add(end, tone, 1, at(c.ClosedAt), c.StreamTime)
		default:
			end := string(c.State) + ": " + reason
			if c.Reason == "" && r.EndedEarly() {
				end = string(c.State) + " when its runner ended early"
			}
			completed.add(end, Bad, 1, at(max(c.ClosedAt, c.OpenedAt)), c.StreamTime)
		}
		for _, o := range c.Outages {
			outages.add("reconnected", Doubt, 1, at(o.From), o.To-o.From)
		}
		for _, f := range c.Findings {
			if f.Kind == ledger.KindRefused || f.Kind == ledger.KindDropped {
				continue
			}
			tone, lateness := Bad, time.Duration(0)
			if f.Kind == ledger.KindLate {
				tone, lateness = Doubt, max(f.Lateness, 0)
			}
			faults.add(s.kindText(f.Kind), tone, clamp.Int(max(f.Count, 1)), at(f.At), lateness)
		}
	}
	planned := s.v.Connections.Planned
	s.attempts(&out)
	if len(completed) == 1 && completed[0].tone == Good && len(refused)+len(outages)+len(faults)+len(out.Tables) == 0 {
		return out
	}
	out.addGroups(completed, "Streams", "end", "open time", planned)
	out.addGroups(refused, "Clients that never had a stream", "cause", "attempt", planned)
	out.addGroups(outages, "Outages", "outcome", "outage", planned)
	out.addGroups(faults, s.nouns(true)+" with faults", "fault", "lateness", clamp.Int(s.v.Messages.Expected))
	if len(faults) > 0 {
		out.Notes = append(out.Notes, "The table “"+s.nouns(true)+" with faults” counts only the first findings of each client. The section “"+s.accountTitle()+"” counts all.")
	}
	return out
}

func (s *pageBuilder) teardown() Section {
	out := Section{ID: "teardown", Title: "Requests that end the streams", Short: "End requests"}
	for _, t := range s.v.Tables {
		t.Title = ""
		out.Tables = append(out.Tables, tableOf(t))
	}
	return out
}

var kindNames = map[ledger.Kind]string{
	ledger.KindLost: "missed", ledger.KindUnsent: "missed: nothing arrived when due",
	ledger.KindTail: "missed at the end of a stream", ledger.KindDuplicated: "received twice", ledger.KindReordered: "received out of order",
	ledger.KindCorrupted: "corrupted", ledger.KindLate: "late", ledger.KindRestarted: "numbers restarted at 1",
	ledger.KindEndedEarly: "a stream closed before the end of its lifetime", ledger.KindOverdue: "a stream open for longer than its lifetime",
	ledger.KindAnnounced: "a gap that the service announced",
	ledger.KindMisrouted: "message of another topic", ledger.KindIDReset: "an id that the service reset", ledger.KindNoID: "no id to resume from",
}

// attempts counts the failed attempts to connect by cause, including attempts of clients that succeeded later.
func (s *pageBuilder) attempts(out *Section) {
	var byCause groups
	streams := map[string]int{}
	for _, c := range s.v.Records() {
		r := s.Merged.Runners[c.Runner]
		for _, f := range c.Refusals {
			byCause.add(f.Reason, Bad, f.Count, format.Unix(r.At(f.First)), 0)
			byCause.add(f.Reason, Bad, 0, format.Unix(r.At(f.Last)), 0)
			streams[f.Reason]++
		}
	}
	t := Table{Caption: "Attempts to connect that were refused", Columns: Columns("cause", "#count", "#clients", "first seen (UTC)", "last seen (UTC)")}
	for _, g := range byCause.sortByCount() {
		row := Row{{Text: g.text, Tone: g.tone}}
		t.Rows = append(t.Rows, append(row, Cells(format.Thousands(g.n), format.Thousands(streams[g.text]), format.Clock(g.first), format.Clock(g.last))...))
	}
	if len(byCause) > 0 {
		out.Tables = append(out.Tables, t)
	}
}
