package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const (
	// maxActionAge is the maximum time from the start of an action to an incident that names it, in seconds.
	maxActionAge = 60
	maxIncidents = 12
)

// An incident is a group of faults that are close in time.
type incident struct {
	verdict.Incident
	causes []string // failures of the target
}

// incidents returns the incidents of the clients and the failures of the target, merged, in order of time. Failures
// at an unknown time are one incident, the last one.
func incidents(v *verdict.Verdict) (out []*incident) {
	for _, inc := range v.Incidents {
		out = append(out, &incident{Incident: inc})
	}
	for _, f := range v.Failures {
		isNear := func(inc *incident) bool {
			return f.Unix >= inc.FirstUnix-verdict.IncidentGapSeconds && f.Unix <= inc.LastUnix+verdict.IncidentGapSeconds
		}
		i := slices.IndexFunc(out, isNear)
		if i < 0 {
			i = len(out)
			out = append(out, &incident{Incident: verdict.Incident{FirstUnix: f.Unix, LastUnix: f.Unix}})
		}
		inc := out[i]
		inc.causes = append(inc.causes, f.Text)
		inc.FirstUnix, inc.LastUnix = min(inc.FirstUnix, f.Unix), max(inc.LastUnix, f.Unix)
	}
	position := func(inc *incident) float64 {
		if inc.FirstUnix == 0 {
			return math.Inf(1)
		}
		return inc.FirstUnix
	}
	slices.SortStableFunc(out, func(a, b *incident) int { return cmp.Compare(position(a), position(b)) })
	return out
}

func (s *pageBuilder) incidentSection() Section {
	out := Section{ID: "story", Title: "Incidents"}
	list := incidents(s.v)
	if len(list) == 0 || s.v.Verdict == verdict.Pass {
		return out
	}
	when := format.Clock(list[0].FirstUnix) + " UTC"
	if list[0].FirstUnix == 0 {
		when = "an unknown time"
	}
	out.Lead = []string{fmt.Sprintf("%s at %s: %s.", format.Form(len(list), "1 incident", format.Thousands(len(list))+" incidents, the first"),
		when, s.description(list[0]))}
	t := Table{Columns: Columns("when (UTC)", "faults", "clients")}
	if len(s.v.Actions) > 0 {
		t.Columns = append(t.Columns, Columns("actions")...)
	}
	for _, inc := range list[:min(len(list), maxIncidents)] {
		clock := format.Clock(inc.FirstUnix)
		if end := format.Clock(inc.LastUnix); end != clock {
			clock += " to " + end
		}
		row := Row{{Text: clock, At: inc.FirstUnix}, {Text: s.description(inc), Tone: Bad}, {Text: inc.clients()}}
		if len(s.v.Actions) > 0 {
			row = append(row, Cell{Text: s.actionsBefore(inc)})
		}
		t.Rows = append(t.Rows, row)
	}
	if omitted := len(list) - maxIncidents; omitted > 0 {
		t.Note = fmt.Sprintf("the first %d of %d", maxIncidents, len(list))
	}
	out.Tables = []Table{t}
	out.Notes = []string{fmt.Sprintf("Faults at most %d s apart form one incident.", verdict.IncidentGapSeconds)}
	if len(s.v.Actions) > 0 {
		out.Notes[0] += " An action before an incident is not necessarily its cause."
	}
	if n := countUnlisted(s.v); n > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("The time of %s is not known, because only the first findings of each client are recorded in detail.", format.Count(n, "more fault")))
	}
	return out
}

func (s *pageBuilder) description(inc *incident) string {
	parts := slices.Clone(inc.causes)
	for _, k := range inc.Kinds {
		parts = append(parts, fmt.Sprintf("%s × %s", format.Thousands(k.Count), s.kindText(ledger.Kind(k.Kind))))
	}
	return strings.Join(parts, "; ")
}

func (inc *incident) clients() string {
	text := strings.Join(inc.IDs, ", ")
	if omitted := inc.Connections - len(inc.IDs); omitted > 0 {
		text += fmt.Sprintf(" and %s more", format.Thousands(omitted))
	}
	return text
}

// actionsBefore names the actions that started shortly before an incident or during it.
func (s *pageBuilder) actionsBefore(inc *incident) string {
	var out []string
	for i := range s.v.Actions {
		if a := &s.v.Actions[i]; a.Started() && a.StartedUnix <= inc.LastUnix && a.StartedUnix > inc.FirstUnix-maxActionAge {
			out = append(out, a.Name+" started "+relativeTime(inc.FirstUnix-a.StartedUnix))
		}
	}
	return strings.Join(out, "; ")
}

func relativeTime(seconds float64) string {
	if seconds < 0 {
		return format.Milliseconds(-1000*seconds) + " later"
	}
	return format.Milliseconds(1000*seconds) + " before"
}

// countUnlisted returns the number of faults other than lateness that are in no group.
func countUnlisted(v *verdict.Verdict) (n uint64) {
	listedCounts := map[string]uint64{}
	for _, g := range v.Groups {
		listedCounts[g.Kind] += g.Count
	}
	for _, k := range v.Kinds {
		if k.Kind != string(ledger.KindLate) {
			n += k.Count - min(k.Count, listedCounts[k.Kind])
		}
	}
	return n
}
