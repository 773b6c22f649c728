package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A FindingGroup is a set of findings of one kind, with one cause, at one time, about the same message. If more than
// maxSimilar groups would differ only in their message, one group has the findings about all messages.
type FindingGroup struct {
	Kind        string   `json:"kind"`
	Connections int      `json:"connections"`
	Count       uint64   `json:"count"`            // messages, or findings if the kind is not about messages
	Runner      int      `json:"runner,omitempty"` // the index of the runner of all findings; 0: several runners, or the run has only one
	FirstUnix   float64  `json:"first_unix_s"`
	LastUnix    float64  `json:"last_unix_s"`
	IDs         []string `json:"ids"` // the first clients
	Text        string   `json:"text"`
}

// A KindCount is the number of faults of one kind. An Incident counts listed findings only. A FindingSummary counts all
// findings, except that it counts only listed findings of ledger.KindRestarted.
type KindCount struct {
	Kind  string `json:"kind"`
	Count uint64 `json:"count"`
}

// An Incident is a set of findings of any kind at one time.
type Incident struct {
	FirstUnix   float64     `json:"first_unix_s"`
	LastUnix    float64     `json:"last_unix_s"`
	Kinds       []KindCount `json:"kinds"` // in the order of their first findings
	Connections int         `json:"connections"`
	IDs         []string    `json:"ids"` // the first clients

	lastNumber int // number of the last client added, from 1; 0: none
}

// A FindingSummary holds the findings of all clients: listed, grouped, and counted.
type FindingSummary struct {
	Findings  []Finding      `json:"findings,omitempty"`       // the first of each kind; connections.csv lists more
	Groups    []FindingGroup `json:"finding_groups,omitempty"` // in order of time
	Kinds     []KindCount    `json:"finding_counts,omitempty"`
	Incidents []Incident     `json:"incidents,omitempty"`
}

const (
	// IncidentGapSeconds is the longest time between two successive findings of one incident, in seconds.
	IncidentGapSeconds = 15

	groupGapSeconds = 2 // the longest time between two successive findings of one group, in seconds
	maxSimilar      = 3 // the maximum number of groups that differ only in their message
	maxIDs          = 3 // the maximum number of clients that a group or an incident names
)

// A cause has the properties that all findings of one group share.
type cause struct {
	kind   ledger.Kind
	reason string // the reason of a dropped or refused client
	source ledger.Source
}

// A subject is the message or range of messages of a finding; for a dropped client, the last one that arrived.
type subject struct {
	topic    string
	from, to uint64
	count    uint64
	numbered bool
}

// A bundle is a FindingGroup under construction.
type bundle struct {
	cause
	subject
	isMixed     bool // the subjects differ
	clients     int
	count       uint64
	first, last time.Time
	longest     time.Duration // the maximum lateness
	runner      int           // index into Merged.Runners; -1: several
	ids         []string
	id, text    string // the client and the sentence of the first finding
	hasDetails  bool   // the sentence of a finding has details that the sentence of the group lacks
	findings    int
	lastNumber  int // number of the last client added, from 1; 0: none
}

// A cluster holds the findings of one cause at one time.
type cluster struct {
	all       bundle
	byMessage map[subject]*bundle // nil: more than maxSimilar messages
}

// numberClusters assigns a number to each Unix second. Successive seconds that are at most gap apart have the same
// number.
func numberClusters(seconds map[int64]bool, gap int64) map[int64]int {
	out, number, previous := make(map[int64]int, len(seconds)), -1, int64(0)
	for _, at := range slices.Sorted(maps.Keys(seconds)) {
		if number < 0 || at-previous > gap {
			number++
		}
		out[at], previous = number, at
	}
	return out
}

// eachFinding calls visit with each listed finding, and with the number of its client, from 1.
func (s *Streams) eachFinding(visit func(n int, r *shard.Connection, f ledger.Finding, at time.Time)) {
	for i, r := range s.Records() {
		for _, f := range r.Findings {
			visit(i+1, r, f, s.m.Runners[r.Runner].At(f.At))
		}
	}
}

func (s *Streams) groupFindings() {
	times, all := map[cause]map[int64]bool{}, map[int64]bool{}
	s.eachFinding(func(_ int, r *shard.Connection, f ledger.Finding, at time.Time) {
		c := causeOf(r, f)
		if times[c] == nil {
			times[c] = map[int64]bool{}
		}
		times[c][at.Unix()] = true
		if s.inIncidents(f.Kind) {
			all[at.Unix()] = true
		}
	})
	if len(times) == 0 {
		return
	}
	numbers, clusters := map[cause]map[int64]int{}, map[cause][]*cluster{}
	for c, set := range times {
		numbers[c] = numberClusters(set, groupGapSeconds)
	}
	incident := numberClusters(all, IncidentGapSeconds)
	s.eachFinding(func(n int, r *shard.Connection, f ledger.Finding, at time.Time) {
		c := causeOf(r, f)
		k := numbers[c][at.Unix()]
		for len(clusters[c]) <= k {
			clusters[c] = append(clusters[c], &cluster{byMessage: map[subject]*bundle{}})
		}
		s.addToCluster(clusters[c][k], c, n, r, f, at)
		if s.inIncidents(f.Kind) {
			s.addToIncident(incident[at.Unix()], n, r, f, at)
		}
	})
	s.listGroups(clusters)
}

// inIncidents reports whether findings of a kind are part of incidents: all but late messages within MAX_LATE.
func (s *Streams) inIncidents(kind ledger.Kind) bool {
	limit := s.m.Plan.MaxLate
	return kind != ledger.KindLate || limit >= 0 && s.Messages.Late > uint64(limit)
}

func (s *Streams) addToCluster(to *cluster, c cause, n int, r *shard.Connection, f ledger.Finding, at time.Time) {
	message := s.subjectOf(r, f)
	s.addToBundle(&to.all, c, message, n, r, f, at)
	if to.byMessage == nil {
		return
	}
	b := to.byMessage[message]
	if b == nil {
		if len(to.byMessage) == maxSimilar {
			to.byMessage = nil
			return
		}
		b = new(bundle)
		to.byMessage[message] = b
	}
	s.addToBundle(b, c, message, n, r, f, at)
}

// addToBundle adds a finding of client n to a bundle.
func (s *Streams) addToBundle(b *bundle, c cause, message subject, n int, r *shard.Connection, f ledger.Finding, at time.Time) {
	if b.findings++; b.findings == 1 {
		b.cause, b.subject, b.first, b.last, b.runner = c, message, at, at, r.Runner
		b.id, b.text = r.ID, s.sentence(r, f, at)
	}
	b.hasDetails = b.hasDetails || f.Kind == ledger.KindRefused || f.Note != "" && f.Note != r.Reason || f.Kind == ledger.KindTail && otherEvents(r.Record, f) != "" ||
		explanation(r.Record, f) != ""
	b.isMixed = b.isMixed || b.subject != message
	b.from, b.to = min(b.from, message.from), max(b.to, message.to)
	if at.Before(b.first) {
		b.first, b.id, b.text = at, r.ID, s.sentence(r, f, at)
	}
	if at.After(b.last) {
		b.last = at
	}
	if b.runner != r.Runner {
		b.runner = -1
	}
	b.count += weightOf(f)
	b.longest = max(b.longest, f.Lateness)
	if b.lastNumber != n {
		b.lastNumber = n
		b.clients++
		if len(b.ids) < maxIDs {
			b.ids = append(b.ids, r.ID)
		}
	}
}

// addToIncident adds a finding of client n to the kth incident.
func (s *Streams) addToIncident(k, n int, r *shard.Connection, f ledger.Finding, at time.Time) {
	for len(s.Incidents) <= k {
		s.Incidents = append(s.Incidents, Incident{FirstUnix: format.Unix(at), LastUnix: format.Unix(at)})
	}
	i := &s.Incidents[k]
	i.FirstUnix, i.LastUnix = min(i.FirstUnix, format.Unix(at)), max(i.LastUnix, format.Unix(at))
	index := slices.IndexFunc(i.Kinds, func(k KindCount) bool { return k.Kind == string(f.Kind) })
	if index < 0 {
		index = len(i.Kinds)
		i.Kinds = append(i.Kinds, KindCount{Kind: string(f.Kind)})
	}
	i.Kinds[index].Count += weightOf(f)
	if i.lastNumber != n {
		i.lastNumber = n
		i.Connections++
		if len(i.IDs) < maxIDs {
			i.IDs = append(i.IDs, r.ID)
		}
	}
}

func (s *Streams) listGroups(clusters map[cause][]*cluster) {
	formatter := Formatter{s.m}
	for _, all := range clusters {
		for _, c := range all {
			bundles := []*bundle{&c.all}
			if c.byMessage != nil {
				bundles = slices.Collect(maps.Values(c.byMessage))
			}
			for _, b := range bundles {
				g := FindingGroup{
					Kind: string(b.kind), Connections: b.clients, Count: b.count, FirstUnix: format.Unix(b.first), LastUnix: format.Unix(b.last), IDs: b.ids, Text: b.text,
				}
				if b.runner >= 0 && len(s.m.Runners) > 1 {
					g.Runner = s.m.Runners[b.runner].Index
				}
				if b.findings > 1 {
					g.Text = formatter.group(b, g.Runner)
				}
				s.Groups = append(s.Groups, g)
			}
		}
	}
	slices.SortFunc(s.Groups, func(a, b FindingGroup) int {
		return cmp.Or(cmp.Compare(a.FirstUnix, b.FirstUnix), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
	})
}

func causeOf(r *shard.Connection, f ledger.Finding) cause {
	c := cause{kind: f.Kind, source: f.Source}
	if f.Kind == ledger.KindDropped || f.Kind == ledger.KindRefused {
		c.reason = r.Reason
	}
	return c
}

func (s *Streams) subjectOf(r *shard.Connection, f ledger.Finding) subject {
	switch f.Kind { //nolint:exhaustive // all others are about messages
	case ledger.KindDropped:
		if r.Numbered && r.Last > 0 {
			return subject{from: r.Last, to: r.Last, numbered: true}
		}
		return subject{from: r.Received, to: r.Received}
	case ledger.KindRefused, ledger.KindEndedEarly, ledger.KindOverdue, ledger.KindAnnounced, ledger.KindIDReset, ledger.KindNoID:
		return subject{}
	}
	topic, _, _ := s.m.Topic(r)
	message := subject{topic: topic, from: f.From, to: f.From, count: weightOf(f), numbered: f.From > 0}
	switch f.Kind { //nolint:exhaustive // all others are about one message
	case ledger.KindLost:
		message.to = f.To
	case ledger.KindTail:
		message.to, message.numbered = f.To, numbersKnown(r)
	case ledger.KindUnsent:
		message.numbered = false
	}
	if !message.numbered { // the ordinal of a message depends on when the stream opened
		message.from, message.to = 0, 0
	}
	return message
}

// weightOf returns the number of messages of a finding, or 1 if the finding is not about messages.
func weightOf(f ledger.Finding) uint64 {
	switch f.Kind { //nolint:exhaustive // all others count for one
	case ledger.KindLost, ledger.KindUnsent, ledger.KindTail:
		return max(f.Count, 1)
	}
	return 1
}

func (s *Streams) countKinds() {
	all := &s.sum
	for _, total := range []struct {
		kind ledger.Kind
		n    uint64
	}{
		{ledger.KindRefused, clamp.Uint64(s.Connections.Refused)},
		{ledger.KindDropped, clamp.Uint64(s.Connections.Dropped)},
		{ledger.KindEndedEarly, all.EndedEarly},
		{ledger.KindOverdue, all.Overdue},
		{ledger.KindLost, all.Lost},
		{ledger.KindUnsent, all.Unsent},
		{ledger.KindTail, all.Tail},
		{ledger.KindDuplicated, all.Duplicated},
		{ledger.KindReordered, all.Reordered},
		{ledger.KindCorrupted, all.Corrupted},
		{ledger.KindMisrouted, all.Misrouted},
		{ledger.KindAnnounced, all.AnnouncedGaps},
		{ledger.KindIDReset, all.IDResets},
		{ledger.KindNoID, all.NoIDs},
		{ledger.KindRestarted, clamp.Uint64(s.listedCounts[ledger.KindRestarted])},
		{ledger.KindLate, all.Late},
	} {
		if total.n > 0 {
			s.Kinds = append(s.Kinds, KindCount{string(total.kind), total.n})
		}
	}
}

// Total returns the number of faults of a kind; see KindCount.
func (f *FindingSummary) Total(kind ledger.Kind) uint64 {
	for _, k := range f.Kinds {
		if k.Kind == string(kind) {
			return k.Count
		}
	}
	return 0
}

// Sentences returns the sentences of the groups of the given kinds, in order of time. If findings are not listed, the
// last sentence states their number.
func (s *Streams) Sentences(kinds ...ledger.Kind) (out []string) {
	var total, listed uint64
	for _, kind := range kinds {
		total += s.Total(kind)
	}
	for _, g := range s.Groups {
		if slices.Contains(kinds, ledger.Kind(g.Kind)) {
			out = append(out, g.Text)
			listed += g.Count
		}
	}
	if listed > 0 && total > listed {
		out = append(out, fmt.Sprintf("%s counted but not listed, because only the first findings of each client are recorded in detail",
			format.Plural(total-listed, "more finding is", "more findings are")))
	}
	return out
}
