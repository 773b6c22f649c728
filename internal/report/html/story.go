package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const (
	// sameIncident is how far apart two faults of one incident are, in seconds.
	sameIncident = 15
	// longBefore is how long an action may have begun before an incident to be named with it.
	longBefore = 60
	// mostIncidents are told; what was found is listed anyway.
	mostIncidents = 12
	// mostNames are the connections that an incident names.
	mostNames = 3
)

// An incident is what went wrong at one time.
type incident struct {
	from, to float64 // Unix seconds
	kinds    []ledger.Kind
	count    map[ledger.Kind]int
	ids      []string
}

// incidents puts faults together that happened at one time.
func incidents(findings []verdict.Finding) (out []*incident) {
	byTime := slices.SortedStableFunc(slices.Values(findings), func(a, b verdict.Finding) int { return cmp.Compare(a.Unix, b.Unix) })
	for _, f := range byTime {
		if n := len(out); n == 0 || f.Unix-out[n-1].to > sameIncident {
			out = append(out, &incident{from: f.Unix, count: map[ledger.Kind]int{}})
		}
		one, kind := out[len(out)-1], ledger.Kind(f.Kind)
		one.to = f.Unix
		if one.count[kind]++; one.count[kind] == 1 {
			one.kinds = append(one.kinds, kind)
		}
		one.ids = append(one.ids, f.ID)
	}
	return out
}

// story tells what went wrong, to whom and when, and what else happened then: what a person asks first of a run that did
// not pass.
func (s *subject) story() Section {
	out := Section{ID: "story", Title: "What happened"}
	all := incidents(s.v.Findings)
	if len(all) == 0 || s.v.Verdict == verdict.Pass {
		return out
	}
	out.Lead = []string{fmt.Sprintf("%s, the first at %s UTC: %s.", format.Count(len(all), "incident"), clock(all[0].from), s.what(all[0]))}
	t := Table{Columns: columns("when (UTC)", "what", "who", "what else happened then")}
	causes := s.causes()
	for _, one := range all[:min(len(all), mostIncidents)] {
		when := clock(one.from)
		if end := clock(one.to); end != when {
			when += " to " + end
		}
		t.Rows = append(t.Rows, Row{{Text: when, At: one.from}, {Text: s.what(one), Tone: Bad}, {Text: one.who()}, {Text: s.meanwhile(one, causes)}})
	}
	if more := len(all) - mostIncidents; more > 0 {
		t.Note = fmt.Sprintf("the first %d of %d", mostIncidents, len(all))
	}
	out.Tables = []Table{t}
	out.Notes = []string{fmt.Sprintf("Faults less than %d s apart are one incident. What happened at the same time need not be its cause.", sameIncident)}
	return out
}

// what is how many faults of which kind.
func (s *subject) what(one *incident) string {
	parts := make([]string, len(one.kinds))
	for i, kind := range one.kinds {
		parts[i] = fmt.Sprintf("%s × %s", format.Thousands(one.count[kind]), s.kind(kind))
	}
	return strings.Join(parts, "; ")
}

// who names some connections.
func (one *incident) who() string {
	ids := slices.Compact(slices.Sorted(slices.Values(one.ids)))
	text := strings.Join(ids[:min(len(ids), mostNames)], ", ")
	if more := len(ids) - mostNames; more > 0 {
		text += fmt.Sprintf(" and %s more", format.Thousands(more))
	}
	return text
}

// meanwhile is what else is known of that time: commands that had begun, and what was measured.
func (s *subject) meanwhile(one *incident, causes []cause) string {
	var out []string
	for i := range s.v.Actions {
		if a := &s.v.Actions[i]; a.Began() && a.StartedUnix <= one.to && a.StartedUnix > one.from-longBefore {
			out = append(out, "the action "+a.Name+" began "+apart(one.from-a.StartedUnix))
		}
	}
	if s.series.n > 0 {
		out = append(out, s.coincided(s.series.index(one.from), s.series.index(one.to), causes, ""))
	}
	return strings.Join(out, "; ")
}

// apart says when something was that came so many seconds before.
func apart(seconds float64) string {
	if seconds < 0 {
		return duration(-1000*seconds) + " later"
	}
	return duration(1000*seconds) + " before"
}
