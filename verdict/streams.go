package verdict

import (
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/ledger"
	"github.com/sse-soak/sse-soak/shard"
)

// Streams is the account of the event streams of a suite: the same books that a soak is judged
// by, for suites that open and end them in another way.
type Streams struct {
	Connections Connections
	Noops       Noops
	LatenessMS  Quantiles
	ConnectMS   Quantiles
	Server      Server

	judge *judge
}

// Account adds the streams of a run up, and holds them against the server's own ledger.
func Account(m *shard.Merged, server ServerLedger, oneClock bool) *Streams {
	j := &judge{m: m, server: server, facts: Facts{OneClock: oneClock}, listed: map[ledger.Kind]int{}, v: &Verdict{Plan: Planned{m.Plan}}}
	j.connections()
	j.times()
	return &Streams{
		Connections: j.v.Connections, Noops: j.v.Noops, LatenessMS: j.v.LatenessMS, ConnectMS: j.v.ConnectMS,
		Server: j.v.Server, judge: j,
	}
}

// Criteria are those of a soak: every planned stream opened and held to its wanted end, every noop
// received once, in order and intact, the server's count and the script's checks.
func (s *Streams) Criteria() []Judged {
	return append(s.judge.streamCriteria(), s.judge.countCriteria()...)
}

// byLoad begin the names of the criteria that more load may break in a good service. The script of
// a climb, which looks for that load, makes no checks.
var byLoad = []string{"connections opened", "connections held to the end", "noops missed", "interval between", "noops over ", "checks of the script"}

// AtAnyLoad are those criteria that hold however much load there is. A suite that looks for the
// breaking point judges the others by step.
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

// fill puts the account where a soak has it.
func (s *Streams) fill(v *Verdict) {
	from := s.judge.v
	v.Connections, v.Noops, v.Server = from.Connections, from.Noops, from.Server
	v.LatenessMS, v.ConnectMS, v.LatencyMS = from.LatenessMS, from.ConnectMS, from.LatencyMS
	v.Findings, v.Runners, v.Interval = from.Findings, from.Runners, from.Interval
}
