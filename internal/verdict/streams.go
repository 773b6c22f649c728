package verdict

import (
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Streams are the counts of the event streams of a suite, judged as those of a soak; a suite opens and
// ends its streams in another way.
type Streams struct {
	Connections Connections
	Noops       Noops
	LatenessMS  Quantiles
	ConnectMS   Quantiles
	Server      Server

	judge *judge
}

// Account adds up the streams of a run, and compares them with the server's own ledger.
func Account(m *shard.Merged, server ServerLedger, oneClock bool) *Streams {
	j := &judge{m: m, server: server, facts: Facts{OneClock: oneClock}, listed: map[ledger.Kind]int{}, v: &Verdict{Plan: Planned{m.Plan}}}
	j.connections()
	j.times()
	j.evidence()
	return &Streams{
		Connections: j.v.Connections, Noops: j.v.Noops, LatenessMS: j.v.LatenessMS, ConnectMS: j.v.ConnectMS,
		Server: j.v.Server, judge: j,
	}
}

// Criteria are those of a soak: every planned stream opened and was held to its end, every noop came
// once, in order and intact, and the server's count and the script's checks agree.
func (s *Streams) Criteria() []Judged {
	return append(s.judge.streamCriteria(), s.judge.countCriteria()...)
}

// byLoad are prefixes of the names of criteria that a good service may fail under more load. A script
// that looks for that load makes no checks.
var byLoad = []string{"connections opened", "connections held to the end", "noops missed", "interval between", "noops over ", "checks of the script"}

// AtAnyLoad are the criteria that a service has to meet at any load. A suite that looks for the breaking
// point judges the others step by step.
func (s *Streams) AtAnyLoad() []Judged {
	return slices.DeleteFunc(s.Criteria(), func(c Judged) bool {
		return slices.ContainsFunc(byLoad, func(name string) bool { return strings.HasPrefix(c.Name, name) })
	})
}

// Sentences are the findings of some kinds in words, the first of each.
func (s *Streams) Sentences(kinds ...ledger.Kind) []string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return s.judge.sentences(words...)
}

// fill copies the counts to where a soak has them.
func (s *Streams) fill(v *Verdict) {
	from := s.judge.v
	v.Connections, v.Noops, v.Server = from.Connections, from.Noops, from.Server
	v.LatenessMS, v.ConnectMS, v.LatencyMS = from.LatenessMS, from.ConnectMS, from.LatencyMS
	v.Findings, v.Runners, v.Interval = from.Findings, from.Runners, from.Interval
	v.Evidence = from.Evidence
}
