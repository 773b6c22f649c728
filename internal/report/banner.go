package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func banner(v *verdict.Verdict) Banner {
	b := Banner{Word: v.Heading(), Tone: tone(v), Sentence: sentence(v), Name: v.TestID, Findings: findings(v)}
	target := v.Plan.BackendURL
	if v.Layout.Declared {
		target = cmp.Or(v.Suite.BackendURL, target)
	}
	if v.Plan.Service != "" {
		target = v.Plan.ServiceName() + " at " + target
	}
	about := []string{format.UnixTime(v.StartedUnix), "", target + v.RedirectText(), ""}
	if v.StartedUnix > 0 && !v.NoData {
		about[1] = format.Duration(runDuration(v))
	}
	if v.Layout.Declared {
		about[3] = "suite " + v.Suite.Name
		if v.Suite.Profile != "" {
			about[3] += fmt.Sprintf(", profile %s, %s", v.Suite.Profile, format.Count(len(v.Suite.Stages), "stage"))
		}
		about[3] += ", " + format.Count(v.Plan.Runners, "runner")
	} else if v.Plan.Connections > 0 {
		about[3] = fmt.Sprintf("%s, %s, %s", format.Count(v.Plan.Connections, "stream"), verdict.IntervalText(&v.Plan, &v.Service), format.Count(v.Plan.Runners, "runner"))
	}
	b.About = slices.DeleteFunc(about, func(s string) bool { return s == "" })
	return b
}

func tone(v *verdict.Verdict) Tone {
	switch {
	case v.Verdict == verdict.Pass && !v.ConnectionsOnly():
		return Good
	case v.Verdict == verdict.Fail:
		return Bad
	}
	return Doubt
}

const maxFindings = 5

func sentence(v *verdict.Verdict) string { return strings.TrimPrefix(v.Summary(), v.Heading()+": ") }

// A finding is a reason with its position in the banner.
type finding struct {
	order, unix float64
	text        string
}

// details returns the reasons that have a time, by their text. A later reason of the same check without a time, such as
// the number of unlisted findings, has the position of the reason before it.
func details(v *verdict.Verdict) map[string]finding {
	out := map[string]finding{}
	for _, g := range v.Groups {
		out[g.Text] = finding{2, g.FirstUnix, g.Text}
	}
	for _, f := range v.Failures {
		out[f.Text] = finding{1, f.Unix, f.Text}
	}
	for i := range v.Checks {
		last, follows := finding{}, false
		for _, r := range v.Checks[i].Sentences() {
			switch f, ok := out[r]; {
			case ok:
				last, follows = f, true
			case follows:
				out[r] = finding{last.order, last.unix, r}
			}
		}
	}
	return out
}

// findings returns at most maxFindings reasons in this order: causes of an invalid run, failures of the target,
// findings by time, other reasons. It omits reasons that the sentence of the banner contains. It omits symptoms, unless
// all reasons are symptoms. If there are too many reasons, the last text states the number of all reasons.
func findings(v *verdict.Verdict) []string {
	var sorted []finding
	details, symptoms := details(v), symptoms(v)
	for i, r := range v.Reasons {
		f, ok := details[r]
		switch {
		case ok:
		case len(symptoms) < len(v.Reasons) && slices.Contains(symptoms, r): // other reasons name the cause
			continue
		case v.Stopped(), strings.Contains(sentence(v), r), v.Verdict == verdict.Pass && i == 0: // the sentence contains the reason
			continue
		case v.Verdict == verdict.Invalid:
			f = finding{0, 0, r}
		default:
			f = finding{3, 0, r}
		}
		sorted = append(sorted, f)
	}
	slices.SortStableFunc(sorted, func(a, b finding) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.unix, b.unix)) })
	var out []string
	for _, f := range sorted[:min(len(sorted), maxFindings)] {
		out = append(out, f.text)
	}
	if omitted := len(sorted) - len(out); omitted > 0 {
		out[len(out)-1] = "… more reasons are listed under Reasons in the report"
	}
	return out
}

// symptoms returns the reasons that follow from other ones. Checks of the script repeat the faults of streams. The
// ledger of a target that died is incomplete. Counts are too low if not every client was observed.
func symptoms(v *verdict.Verdict) (out []string) {
	isComplete := true
	for i := range v.Checks {
		switch c := &v.Checks[i]; {
		case c.ID == verdict.CheckComplete:
			isComplete = c.State() != verdict.Undecided
		case c.ID == verdict.CheckScript, c.ID == verdict.CheckServerCount && len(v.Failures) > 0:
			out = append(out, c.Reasons...)
		case !isComplete && len(c.Reasons) == 0 && c.State() == verdict.Broken:
			out = append(out, c.Sentences()...)
		}
	}
	return out
}

func (s *pageBuilder) tiles() []Tile {
	if s.v.NoData {
		return nil
	}
	v, c := s.v, s.v.Connections
	open := ""
	if v.OpenSeconds != nil {
		open = ", connected for " + v.OpenSeconds.Percent() + " of the time" + unobservedNote(c)
	}
	if c.Reconnecting > 0 {
		open = ", " + format.Thousands(c.Reconnecting) + " reconnecting" + open
	}
	connections := judgeCount(Tile{Name: "streams open to the end", Value: format.Thousands(c.OpenToEnd()), Note: "of " + format.Thousands(c.Planned) + " planned" + open},
		clamp.Uint64(c.Planned), c.Completed == c.Planned)
	tiles := append([]Tile{connections}, s.messageTiles()...)
	if v.Server.Known && !v.Stopped() { // the counts of a stopped run are not compared
		tiles = append(tiles, s.serverTile())
	}
	return tiles
}

// judgeCount sets the tone of a tile. A good count is not judged if no item was expected.
func judgeCount(t Tile, expected uint64, good bool) Tile {
	switch {
	case expected == 0 && good:
		t.Note = "not judged: none was expected"
	case good:
		t.Tone = Good
	default:
		t.Tone = Bad
	}
	return t
}

func (s *pageBuilder) messageTiles() (tiles []Tile) {
	m := s.v.Messages
	if s.v.Service.CountsMessages() {
		tiles = append(tiles, s.receivedTile(m.Totals), judgeCount(Tile{
			Name: s.nouns(false) + " missed", Value: format.Thousands(m.Missed), Note: format.Share(float64(m.Missed), float64(m.Expected)) + " of those expected",
		}, m.Expected, m.Missed == 0))
	} else {
		tiles = append(tiles, Tile{Name: s.nouns(false), Value: "not checked", Note: cmp.Or(strings.Join(otherEvents(m), ", "), "nothing was received"), Tone: Doubt})
	}
	switch l := s.v.LatencyMS; {
	case m.Received == 0: // the percentiles of no message are 0
	case s.v.Service.HasInterval():
		tiles = append(tiles, Tile{Name: "lateness p99", Value: format.Milliseconds(s.v.LatenessMS.P99), Note: "at most " + format.Milliseconds(s.v.LatenessMS.Max)})
	case s.v.Service.ComparesClients():
		tiles = append(tiles, Tile{Name: "spread p99", Value: format.Milliseconds(s.v.LatenessMS.P99), Note: "between clients; at most " + format.Milliseconds(s.v.LatenessMS.Max)})
	case l != nil:
		tiles = append(tiles, Tile{Name: "latency p99", Value: format.Milliseconds(l.P99), Note: s.latencyName() + "; at most " + format.Milliseconds(l.Max)})
	}
	if p := m.Published; p != nil {
		tiles = append(tiles, judgeCount(Tile{Name: "confirmed", Value: format.Thousands(p.Confirmed), Note: "of " + format.Thousands(p.Planned) + " messages to publish"},
			p.Planned, p.Confirmed == p.Planned))
	}
	return tiles
}

// receivedTile returns the tile of received messages. In a run that did not pass, the tone is good only if all planned
// messages were expected. Fewer are expected on streams that did not stay open to the end.
func (s *pageBuilder) receivedTile(t ledger.Totals) Tile {
	out := Tile{Name: s.nouns(false) + " received", Value: format.Thousands(t.Received), Note: "of " + format.Thousands(t.Expected) + " expected", Tone: Good}
	planned := plannedMessages(s.v)
	switch {
	case t.Expected == 0:
		out.Tone, out.Note = "", "not judged: none was expected"
	case t.Received != t.Expected:
		out.Tone = Bad
	case s.v.Verdict != verdict.Pass && (planned > 0 || s.v.Connections.Completed < s.v.Connections.Planned):
		out.Tone = ""
	}
	if planned > 0 {
		out.Note += ", " + format.Thousands(planned) + " planned"
	}
	return out
}

func (s *pageBuilder) serverTile() Tile {
	server := s.v.Server
	t := Tile{Name: "server's count", Value: "agrees", Note: "its ledger lists " + format.Thousands(server.Sent) + " as sent", Tone: Good}
	if server.Partial(s.v.Messages.Received) {
		t.Note = "its ledger lists " + format.Thousands(server.Sent) + " as sent and lacks the others"
	} else if s.v.Connections.Unobserved > 0 {
		t.Note += " to the observed clients"
	}
	switch {
	case server.Confirms:
		t.Value, t.Tone = "consistent with the faults", ""
	case !server.Agrees:
		t.Value, t.Tone = "differs", Bad
	}
	return t
}
