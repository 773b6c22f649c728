package verdict

import (
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Facts are what the run knew beside the shards.
type Facts struct {
	OneClock  bool      // backend and runners share a host, so their clocks are one
	Resources Resources // of backend and nginx; the runners' are in the shards
	Problems  []string  // why the run is incomplete, beyond what the shards say
	Failures  []string  // what went wrong in a complete run: a backend that died, say
	Warnings  []string
}

// maxFindings bounds the listed findings of each kind, so that many of one kind, lateness
// above all, do not crowd out a single one of another. connections.csv has them all.
const maxFindings = 50

// Judge compares a run with its plan. It depends only on what the run wrote to files.
func Judge(m *shard.Merged, server ServerLedger, facts Facts) *Verdict {
	j := &judge{m: m, server: server, facts: facts, listed: map[ledger.Kind]int{}, v: &Verdict{
		Schema: 1, TestID: m.Plan.TestID, Plan: Planned{m.Plan}, Resources: facts.Resources,
		Warnings: facts.Warnings,
	}}
	j.connections()
	j.times()
	j.runners()
	j.generator()
	j.held()
	j.evidence()
	j.criteria()
	j.conclude()
	return j.v
}

type judge struct {
	m      *shard.Merged
	server ServerLedger
	facts  Facts
	v      *Verdict

	counts   []ledger.Counts // of each runner
	listed   map[ledger.Kind]int
	told     int      // streams whose interval could be measured
	short    []string // ids that received fewer than floor(held / interval)
	disagree []string // sentences

	unexplained []string // those of disagree on streams without any other fault
	proofs      proofs
	sentencesOf [][]string // why a criterion is not met, by the index of v.Criteria
}

func (j *judge) connections() {
	c := &j.v.Connections
	c.Planned = j.m.Plan.Connections
	j.v.Server.Known = j.server != nil
	j.v.Server.Agrees = true
	j.v.Runners, j.counts = make([]Runner, len(j.m.Runners)), make([]ledger.Counts, len(j.m.Runners))
	for i := range j.m.Connections {
		j.connection(&j.m.Connections[i])
	}
	j.interval()
	c.Unobserved = max(c.Planned-len(j.m.Connections), 0)
	var all ledger.Counts
	for i, sum := range j.counts {
		all.Add(sum)
		j.v.Runners[i].Totals = sum.Totals()
	}
	n := &j.v.Noops
	n.Totals = all.Totals()
	n.Floor = uint64(c.Planned) * uint64(j.m.Plan.NoopsPerConnection())
	j.v.Server.Agrees = len(j.disagree) == 0
	j.v.Server.Confirms = len(j.disagree) > 0 && len(j.unexplained) == 0
}

func (j *judge) connection(r *shard.Connection) {
	if r.State == ledger.Connecting && len(r.Refusals) > 0 { // stopped between two attempts
		r.State = ledger.Refused
		r.Findings = append(r.Findings, ledger.Finding{Kind: ledger.KindRefused, At: r.Refusals[len(r.Refusals)-1].Last, Note: r.Reason})
	}
	j.countState(r)
	if r.State == ledger.Waiting {
		r.State = ledger.Dropped // stored, so that a second verdict does not find it again
		r.Findings = append(r.Findings, ledger.Finding{Kind: ledger.KindDropped, At: r.ClosedAt, Note: r.Reason + ", and it did not come back"})
	}
	agreed := len(j.disagree)
	lostAtEnd := j.compare(r)
	if lostAtEnd > 0 { // stored with the connection, so that every later reader sees the same
		r.Tail += lostAtEnd
		r.Findings = append(r.Findings, ledger.Finding{
			Kind: ledger.KindLost, From: r.Last + 1, To: r.Last + lostAtEnd, Count: lostAtEnd, At: r.ClosedAt,
			Note: "sent, by the server's ledger",
		})
	}
	j.prove(r)
	if r.Missed()+r.Duplicated == 0 { // else that is why it disagrees
		j.unexplained = append(j.unexplained, j.disagree[agreed:]...)
	}
	j.counts[r.Runner].Add(r.Counts)
	j.v.Runners[r.Runner].Connections++
	j.checkFloor(r)
	where := ""
	if laptop := j.m.Laptop(r.Runner); laptop != "" && len(r.Findings) > 0 {
		where = " (" + laptop + ")"
	}
	for _, f := range r.Findings {
		if j.listed[f.Kind]++; j.listed[f.Kind] <= maxFindings {
			at := j.m.Runners[r.Runner].At(f.At)
			j.v.Findings = append(j.v.Findings, Finding{
				Kind: string(f.Kind), ID: r.ID, Unix: unix(at), Text: Sentence(r.Record, f, at) + where,
			})
		}
	}
}

// prove notes which faults of a connection hold whatever the interval is. A client takes a stream for idle, and
// gives up waiting for its end, after a number of intervals.
func (j *judge) prove(r *shard.Connection) {
	p := &j.proofs
	switch end := endOf(r); {
	case r.State == ledger.Refused, r.State == ledger.Dropped && r.Reason != idle, end == endedByError:
		p.unheld = true
	}
	p.missed = p.missed || r.Numbered && r.Lost > 0 || j.sentMore(r)
	p.duplicated = p.duplicated || r.Numbered && r.Duplicated > 0
	p.reordered = p.reordered || r.Numbered && r.Reordered > 0
}

// sentMore says that the server sent more noops than arrived, by its own ledger. What the clock takes for
// a duplicate may be a noop of a shorter interval.
func (j *judge) sentMore(r *shard.Connection) bool {
	e, ok := j.server[r.ID]
	switch {
	case !ok || r.Streams == 0 || wasTaken(r):
		return false
	case r.Numbered || r.Received == 0:
		return e.Last > r.Last
	}
	return e.First <= 1 && e.Sent > r.Received+r.Corrupted+r.Duplicated
}

func (j *judge) countState(r *shard.Connection) {
	c := &j.v.Connections
	if r.Streams > 0 {
		c.Opened++
		c.Reconnected += r.Streams - 1
	}
	switch r.State {
	case ledger.Completed:
		c.Completed++
	case ledger.Refused:
		c.Refused++
	case ledger.Dropped, ledger.Waiting:
		c.Dropped++
	case ledger.Planned, ledger.Connecting, ledger.Open, ledger.Unfinished:
		c.Unfinished++
	}
}

// compare compares a connection with the server's entry and returns how many noops the server sent
// after the last one that arrived, beyond those that the clock already found missing. If our client
// never had a stream, or got one only after the id had been taken, the entry is that of another client.
func (j *judge) compare(r *shard.Connection) (lostAtEnd uint64) {
	if j.server == nil || r.Streams == 0 || wasTaken(r) {
		return 0
	}
	e, ok := j.server[r.ID]
	if !ok {
		j.disagree = append(j.disagree, fmt.Sprintf("the server has no entry for %s, which held a stream", r.ID))
		return 0
	}
	j.v.Server.Sent += e.Sent
	j.v.Runners[r.Runner].ServerSent += e.Sent
	if !r.Numbered && r.Received > 0 {
		return j.compareCount(r, e)
	}
	switch {
	case e.Last > r.Last:
		if after := e.Last - r.Last; after > r.Tail {
			lostAtEnd = after - r.Tail
		}
	case e.Last < r.Last:
		j.disagree = append(j.disagree, fmt.Sprintf("%s received number %d, the server says the last it sent was %d", r.ID, r.Last, e.Last))
		return 0
	}
	if arrived := r.Received + r.Corrupted + r.Messages; e.First <= 1 && r.Numberings < 2 && e.Sent != arrived {
		what := "noops"
		if r.Messages > 0 {
			what = "noops and messages"
		}
		j.disagree = append(j.disagree, fmt.Sprintf("the server says it sent %d %s to %s, %d arrived", e.Sent, what, r.ID, arrived))
	}
	return lostAtEnd
}

// compareCount is compare for noops without numbers.
func (j *judge) compareCount(r *shard.Connection, e ServerEntry) (lost uint64) {
	arrived := r.Received + r.Corrupted
	if e.First > 1 { // it counts from before this run
		return 0
	}
	if e.Sent > arrived+r.Missed() {
		return e.Sent - arrived - r.Missed()
	}
	if e.Sent < arrived {
		j.disagree = append(j.disagree, fmt.Sprintf("the server says it sent %d noops to %s, %d arrived", e.Sent, r.ID, arrived))
	}
	return 0
}

// wasTaken says that another client had a stream of this id before ours.
func wasTaken(r *shard.Connection) bool {
	return slices.ContainsFunc(r.Refusals, func(f ledger.Refusal) bool { return f.Reason == taken && f.First < r.OpenedAt })
}

// checkFloor is a second opinion on the ledger: a stream that was held for so long is owed at least
// floor(held / interval) noops, whatever their numbers. It allows what the ledger allows: the interval
// that the service kept, and a first noop after at most 1.5 intervals.
func (j *judge) checkFloor(r *shard.Connection) {
	if r.State != ledger.Completed || r.Streams != 1 {
		return
	}
	planned := j.m.Plan.Interval()
	tolerance := min(j.m.Plan.Late(), planned/2)
	held := min(r.Held, j.m.Plan.Hold()) // while the server takes its time to end it, nothing is owed
	owed := max(held-tolerance-planned/2, 0) / max(planned, r.Interval)
	if r.Expected() < uint64(owed) {
		j.short = append(j.short, fmt.Sprintf("%s was held for %s and accounts for %d noops instead of at least %d",
			r.ID, r.Held.Round(time.Millisecond), r.Expected(), owed))
	}
}

func (j *judge) times() {
	j.v.LatenessMS = quantiles(j.m.Lateness)
	j.v.ConnectMS = quantiles(j.m.Connect)
	l := j.m.Latency
	if l == nil {
		return
	}
	h, above := l.Histogram, AboveFastest
	if j.facts.OneClock && l.MinUS >= 0 {
		shifted := shard.NewHistogram()
		shifted.MergeShifted(h, time.Duration(l.MinUS)*time.Microsecond)
		h, above = shifted, AboveSend
	}
	j.v.LatencyMS = &Latency{Quantiles: quantiles(h), Above: above}
}

func quantiles(h *shard.Histogram) Quantiles {
	ms := milliseconds
	return Quantiles{P50: ms(h.Quantile(.5)), P95: ms(h.Quantile(.95)), P99: ms(h.Quantile(.99)), Max: ms(h.Max())}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (j *judge) runners() {
	for i, r := range j.m.Runners {
		out := &j.v.Runners[i]
		out.Index, out.Host, out.Segment, out.State = r.Index, r.Host, r.Segment, string(r.State)
		out.K6Version, out.RSSMax, out.CPUSeconds = r.K6Version, r.RSSMax, r.CPUSeconds
		j.v.Resources.RunnerRSSMax = max(j.v.Resources.RunnerRSSMax, r.RSSMax)
		if wall := float64(r.EndedUS-r.StartedUS) / 1e6; wall > 0 {
			j.v.Resources.RunnerCPUAverage += 100 * r.CPUSeconds / wall
		}
		started, ended := float64(r.StartedUS)/1e6, float64(r.EndedUS)/1e6
		if i == 0 || started < j.v.StartedUnix {
			j.v.StartedUnix = started
		}
		j.v.EndedUnix = max(j.v.EndedUnix, ended)
	}
	for _, c := range j.m.Checks {
		j.v.Checks = append(j.v.Checks, Check(c))
	}
}

func unix(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
