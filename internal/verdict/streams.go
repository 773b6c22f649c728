package verdict

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Streams has the counts of the event streams of a run, and their checks, from which a suite selects.
type Streams struct {
	Counts
	OpenTime
	FindingSummary
	Runners  []Runner     // the counts of each runner
	Watched  *WatchedTime // nil: the whole run was watched
	Warnings []string
	// LateSetting is the setting that limits the number of late messages; "": MAX_LATE.
	LateSetting string

	m       *shard.Merged
	server  ServerLedger
	oneHost bool

	corrections      map[int]*shard.Connection // by index: records that Records yields in place of the runners' records
	counts           []ledger.Counts           // of each runner
	sum              ledger.Counts             // of all runners
	listedCounts     map[ledger.Kind]int       // findings of the records by kind; Findings has at most maxFindings of each
	intervalCount    int                       // streams whose interval was measured
	topics           map[string]*Topic
	comparedTopics   map[string]*comparedTopic // by name; nil: clients are not compared with each other
	prematureTexts   []string                  // sentences about clients that received messages before they were published
	coverage         coverage                  // of the confirmed messages
	lastOutages      lastOutages
	pendingClients   int           // clients to which messages may have been in transit at the end of the run
	delay            time.Duration // the longest delay of messages on these clients, or bufferDelay
	bufferDelay      time.Duration // time for which something buffered messages; 0: nothing did
	floorStreams     int           // streams whose count was compared with floor(open time / interval)
	floorTexts       []string      // sentences about clients whose count was below that number
	differingClients int           // clients whose counts differ from the server's ledger

	unexplained differences // of clients without missed or duplicated messages
	proofs      proofs
	cuts        cutAccount

	replacedClients   int           // clients whose last stream ended before their runner was replaced
	streamlessClients int           // clients without a stream whose runner ended early
	watchedTime       time.Duration // of all clients
}

// maxFindings limits the listed findings of each kind, so that frequent kinds do not displace rare ones.
// connections.csv has all findings that the records list.
const maxFindings = 50

// StreamsOf adds up the streams of a run, and compares them with the server's own ledger, which may be nil. oneHost
// reports whether target and runners share a machine and its clock.
func StreamsOf(m *shard.Merged, server ServerLedger, oneHost bool) *Streams {
	s := &Streams{
		m: m, server: server, oneHost: oneHost, Runners: make([]Runner, len(m.Runners)), counts: make([]ledger.Counts, len(m.Runners)),
		corrections: map[int]*shard.Connection{}, listedCounts: map[ledger.Kind]int{},
	}
	s.Connections.Planned, s.Service, s.Codings, s.Redirects, s.HTTP2 = m.Plan.Connections, m.Service, m.Codings, m.Redirects, m.HTTP2
	s.Server.Known = server != nil
	if s.isBuffered() {
		s.bufferDelay = m.Bursts.Silence.Quantile(.95)
	}
	s.listTopics()
	s.alignFeeds()
	for i, c := range m.Connections.All() {
		s.count(i, c)
	}
	s.Watched = s.sumWatched()
	s.Connections.Unobserved = max(m.Plan.Connections-m.Connections.Len(), 0)
	for i, counts := range s.counts {
		s.sum.Add(counts)
		s.Runners[i].Totals = counts.Totals()
	}
	s.sumMessages()
	s.addNumberCoverage()
	s.addCuts()
	s.groupFindings()
	s.countKinds()
	s.Server.Agrees = s.differingClients == 0
	s.Server.Confirms = s.differingClients > 0 && len(s.unexplained.sentences()) == 0
	s.LatenessMS, s.ConnectMS = quantiles(m.Lateness), quantiles(m.Connect)
	if p := s.Messages.Published; p != nil && p.Late > 0 && s.publishedOnTime() {
		s.Warnings = append(s.Warnings, p.lagText())
	}
	s.setControl()
	s.sumIntervals()
	s.setLatency()
	s.addEndRequests(m)
	if slow := s.slowEndsText(); slow != "" {
		s.Warnings = append(s.Warnings, slow)
	}
	if m.Bursts != nil {
		s.ArrivedTogether = m.Bursts.Share()
	}
	if s.isBuffered() {
		s.Warnings = append(s.Warnings, Bursts(m.Bursts, m.Service.Noun())+": "+Buffer(m.Bursts))
	}
	s.setBasis()
	s.sumOpenTime()
	return s
}

// Records yields the clients as the verdict counts them, with their indexes. It corrects the records of the runners by
// the state at the end of the run. It also corrects them by the data of the publisher, of other clients and of the
// server's ledger. A record is valid until the next iteration.
func (s *Streams) Records() iter.Seq2[int, *shard.Connection] {
	return func(yield func(int, *shard.Connection) bool) {
		for i, c := range s.m.Connections.All() {
			if correction := s.corrections[i]; correction != nil {
				c = correction
			}
			if !yield(i, c) {
				return
			}
		}
	}
}

// Records yields the clients of the run as Streams.Records does. A verdict that was read from a file has none.
func (v *Verdict) Records() iter.Seq2[int, *shard.Connection] {
	if v.streams == nil {
		return func(func(int, *shard.Connection) bool) {}
	}
	return v.streams.Records()
}

// addFinding returns a copy of the ith client with an additional finding. The caller may change the copy.
func (s *Streams) addFinding(i int, r *shard.Connection, f ledger.Finding) *shard.Connection {
	c := s.mutableConnection(i, r)
	c.Findings = append(slices.Clip(c.Findings), f)
	return c
}

// mutableConnection returns a copy of the ith client, which it allocates on the first call.
func (s *Streams) mutableConnection(i int, r *shard.Connection) *shard.Connection {
	c := s.corrections[i]
	if c == nil {
		clone := *r
		c = &clone
		s.corrections[i] = c
	}
	return c
}

func (s *Streams) count(i int, r *shard.Connection) {
	r = s.comparePublished(i, r)
	endedEarly := s.endedEarly(r)
	switch {
	case endedEarly:
	case r.State == ledger.Connecting && len(r.Refusals) > 0: // the run ended between two attempts
		r = s.addFinding(i, r, ledger.Finding{Kind: ledger.KindRefused, At: r.Refusals[len(r.Refusals)-1].Last, Note: r.Reason})
		r.State = ledger.Refused
	case r.State == ledger.Waiting:
		f := ledger.Finding{Kind: ledger.KindDropped, At: r.ClosedAt, Note: r.Reason}
		if o := r.LastOutage; o != nil {
			f.Lateness = o.To - o.From
		} else { // the end of the stream was never requested
			f.Note += ", and it did not reconnect"
		}
		r = s.addFinding(i, r, f)
		r.State = ledger.Dropped
	}
	s.countState(r, endedEarly)
	var entry *ServerEntry
	if e, ok := s.server[r.ID]; ok && s.m.Runners[r.Runner].IsComplete() { // otherwise the entry has messages of other streams, too
		entry = &e
	}
	r, mismatch := s.addTail(i, r, entry)
	s.recordProofs(r, entry)
	if mismatch.kind != noDifference {
		s.differingClients++
		if r.Missed()+r.Duplicated == 0 { // otherwise these faults explain the difference
			s.unexplained.add(mismatch)
		}
	}
	if r.Missed() > 0 {
		s.Messages.ClientsWithLoss++
	}
	s.counts[r.Runner].Add(r.Counts)
	s.Runners[r.Runner].Connections++
	s.checkFloor(r)
	s.listFindings(r)
}

func (s *Streams) listFindings(r *shard.Connection) {
	for _, f := range r.Findings {
		if s.listedCounts[f.Kind]++; s.listedCounts[f.Kind] > maxFindings {
			continue
		}
		at := s.m.Runners[r.Runner].At(f.At)
		s.Findings = append(s.Findings, Finding{Kind: string(f.Kind), ID: r.ID, Unix: format.Unix(at), Text: s.sentence(r, f, at)})
	}
}

func (s *Streams) sentence(r *shard.Connection, f ledger.Finding, at time.Time) string {
	text := Formatter{s.m}.Sentence(r, f, at)
	if laptop := s.m.Laptop(r.Runner); laptop != "" {
		text += " (" + laptop + ")"
	}
	return text
}

// recordProofs records which faults of a client are proven even if the interval of the service differs from the
// plan. Idle timeouts and END_TIMEOUT prove no fault, because they may depend on the planned interval.
func (s *Streams) recordProofs(r *shard.Connection, e *ServerEntry) {
	p := &s.proofs
	p.earlyEnd = p.earlyEnd || r.State == ledger.Refused || r.State == ledger.Dropped && r.Reason != causeIdle || endOf(r) == endError
	p.missed = p.missed || r.Numbered && r.Lost > 0 || e.exceeds(r)
	p.duplicated = p.duplicated || r.Numbered && r.Duplicated > 0
	p.reordered = p.reordered || r.Numbered && r.Reordered > 0
}

// countState counts a client by its state. If its runner was replaced, the record of the new runner shows how the
// client ended.
func (s *Streams) countState(r *shard.Connection, endedEarly bool) {
	c := &s.Connections
	s.watchedTime += s.watchedOf(r, endedEarly)
	isReplaced := s.m.Runners[r.Runner].Replaced
	if r.Streams > 0 {
		c.Reconnected += r.Streams - 1
		if !isReplaced {
			c.Opened++
		}
	}
	if endedEarly {
		if !isReplaced {
			c.Unwatched++
		}
		if !isReplaced && r.Streams == 0 {
			s.streamlessClients++
		}
		return
	}
	if isReplaced {
		s.replacedClients++
	}
	switch r.State {
	case ledger.Completed:
		c.Completed++
		if r.IsDisconnected() {
			c.Reconnecting++
		}
	case ledger.Refused:
		c.Refused++
	case ledger.Dropped, ledger.Waiting:
		c.Dropped++
	case ledger.Planned, ledger.Connecting, ledger.Open, ledger.Unfinished:
		c.Unfinished++
	}
}

// floorTolerance returns the time by which the first message may be later than one interval, plus the time before the
// end in which no message is expected: the tolerances of the ledger.
func floorTolerance(p *plan.Plan) time.Duration {
	return p.Interval()/2 + min(p.LateLimit(), p.Interval()/2)
}

// checkFloor compares the number of messages that the ledger of a client expected with floor(open time / interval),
// the minimum number by time alone. A longer interval of the service replaces the planned one.
func (s *Streams) checkFloor(r *shard.Connection) {
	if r.State != ledger.Completed || r.Streams != 1 || !s.m.Service.HasInterval() {
		return
	}
	s.floorStreams++
	planned := s.m.Plan.Interval()
	open := min(r.OpenTime, s.m.Plan.Hold()) // no message is expected while the stream ends
	expected := max(open-floorTolerance(&s.m.Plan), 0) / max(planned, r.Interval)
	if r.Expected() < clamp.Uint64(int64(expected)) {
		noun := s.m.Service.Noun()
		s.floorTexts = append(s.floorTexts, fmt.Sprintf("%s was open for %s and its ledger expected %s, but at least %s due",
			r.ID, format.Duration(r.OpenTime), format.Plural(r.Expected(), noun, noun+"s"), format.Plural(int64(expected), "was", "were")))
	}
}

func (s *Streams) setLatency() {
	l := s.m.Latency
	if l == nil {
		return
	}
	h, above := l.Histogram, AboveFastest
	if (s.oneHost || s.hasOneClock()) && l.MinUS >= 0 {
		shifted := shard.NewHistogram()
		shifted.MergeShifted(h, time.Duration(l.MinUS)*time.Microsecond)
		h, above = shifted, AboveSend
	}
	s.LatencyMS = &Latency{Quantiles: quantiles(h), Above: above}
}

// hasOneClock reports whether one machine published all messages and opened all streams.
func (s *Streams) hasOneClock() bool {
	return s.Messages.Published != nil && !slices.ContainsFunc(s.m.Runners, func(r shard.Runner) bool { return r.Host != s.m.Runners[0].Host })
}

// LoadIndependentChecks returns the checks that a service must meet at any load. A suite that searches for the breaking
// point judges the other checks at each step.
func (s *Streams) LoadIndependentChecks() []Check {
	return slices.DeleteFunc(append(s.FaultChecks(), s.AgreementChecks()...), func(c Check) bool { return c.loadDependent })
}
