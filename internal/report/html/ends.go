package html

import (
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A group is what happened for the same reason.
type group struct {
	what        string
	tone        Tone
	n           int
	first, last float64
	took        *shard.Histogram
}

// groups keep the order in which reasons came up.
type groups []*group

func (g *groups) add(what string, tone Tone, n int, at float64, took time.Duration) {
	i := slices.IndexFunc(*g, func(have *group) bool { return have.what == what })
	if i < 0 {
		*g = append(*g, &group{what: what, tone: tone, first: at, last: at, took: shard.NewHistogram()})
		i = len(*g) - 1
	}
	have := (*g)[i]
	have.n += n
	have.first, have.last = min(have.first, at), max(have.last, at)
	have.took.Record(took)
}

// mostFirst puts the most frequent first.
func (g groups) mostFirst() groups {
	slices.SortStableFunc(g, func(a, b *group) int { return b.n - a.n })
	return g
}

// table lists the most frequent first.
func (g groups) table(caption, what, took string, of int) Table {
	t := Table{Caption: caption, Columns: columns(what, "#how often", "#share", "first seen (UTC)", "last seen (UTC)", "#"+took+", p50", "#p99", "#max")}
	for _, have := range g.mostFirst() {
		t.Rows = append(t.Rows, Row{
			{Text: have.what, Tone: have.tone}, {Text: integer(have.n)}, {Text: share(float64(have.n), float64(of))},
			{Text: clock(have.first)}, {Text: clock(have.last)},
			{Text: duration(millis(have.took.Quantile(.5)))}, {Text: duration(millis(have.took.Quantile(.99)))}, {Text: duration(millis(have.took.Max()))},
		})
	}
	return t
}

// ends is how connections ended, which outages they came back from, and which faults there
// were, by cause.
func (s *subject) ends() Section {
	out := Section{ID: "ends", Title: "Disconnects and errors, by cause", Short: "Disconnects"}
	var held, refused, outages, faults groups
	for c := range s.v.Records() {
		r := s.Merged.Runners[c.Runner]
		at := func(i ledger.Instant) float64 { return seconds(r.At(i)) }
		switch c.State {
		case ledger.Refused:
			refused.add("refused: "+reason(c.Reason), Bad, 1, at(c.ClosedAt), c.Connect)
		case ledger.Completed:
			held.add("ended by the server when asked to", Good, 1, at(c.ClosedAt), c.Held)
		default:
			held.add(string(c.State)+": "+reason(c.Reason), Bad, 1, at(max(c.ClosedAt, c.OpenedAt)), c.Held)
		}
		for _, o := range c.Outages {
			outages.add("lost, and back", Doubt, 1, at(o.From), o.To-o.From)
		}
		for _, f := range c.Findings {
			if f.Kind != ledger.KindRefused && f.Kind != ledger.KindDropped {
				faults.add(kindName(f.Kind), faultTone(f.Kind), int(max(f.Count, 1)), at(f.At), max(f.Lateness, 0))
			}
		}
	}
	out.Tables = append(out.Tables, s.attempts()...)
	planned := s.v.Connections.Planned
	if len(held) > 0 {
		out.Tables = append(out.Tables, held.table("Streams", "how they ended", "held", planned))
	}
	if len(refused) > 0 {
		out.Tables = append(out.Tables, refused.table("Connections that never opened", "cause", "tried for", planned))
	}
	if len(outages) > 0 {
		out.Tables = append(out.Tables, outages.table("Outages", "", "out for", planned))
	}
	if len(faults) > 0 {
		out.Tables = append(out.Tables, faults.table("Noops that were not as they should be", "what", "late by", int(s.v.Noops.Expected)))
		out.Notes = append(out.Notes, "Of each connection the first findings are listed; counts of noops in the ledger above are whole.")
	}
	return out
}

// attempts counts the attempts to connect that failed, those of connections that got in later among them.
func (s *subject) attempts() []Table {
	var all groups
	streams := map[string]int{}
	for c := range s.v.Records() {
		r := s.Merged.Runners[c.Runner]
		for _, f := range c.Refusals {
			all.add(f.Reason, Bad, f.Count, seconds(r.At(f.First)), 0)
			all.add(f.Reason, Bad, 0, seconds(r.At(f.Last)), 0)
			streams[f.Reason]++
		}
	}
	if len(all) == 0 {
		return nil
	}
	t := Table{Caption: "Attempts to connect that were refused", Columns: columns("cause", "#how often", "#connections", "first seen (UTC)", "last seen (UTC)")}
	for _, g := range all.mostFirst() {
		t.Rows = append(t.Rows, Row{
			{Text: g.what, Tone: g.tone}, {Text: integer(g.n)}, {Text: integer(streams[g.what])}, {Text: clock(g.first)}, {Text: clock(g.last)},
		})
	}
	return []Table{t}
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

func reason(text string) string {
	if text == "" {
		return "no reason known"
	}
	return text
}

func faultTone(k ledger.Kind) Tone {
	if k == ledger.KindLate {
		return Doubt
	}
	return Bad
}

func kindName(k ledger.Kind) string {
	if name, ok := map[ledger.Kind]string{
		ledger.KindLost: "lost: a number was skipped", ledger.KindUnsent: "never sent: the stream was silent",
		ledger.KindTail: "owed at the end", ledger.KindDuplicated: "came twice", ledger.KindReordered: "came out of order",
		ledger.KindCorrupted: "corrupted", ledger.KindLate: "late", ledger.KindRestarted: "numbered anew from 1",
	}[k]; ok {
		return name
	}
	return string(k)
}
