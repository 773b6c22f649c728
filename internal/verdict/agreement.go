package verdict

import (
	"fmt"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// AgreementChecks returns the check that the clients' counts agree with the server's ledger, if there is one, and the
// check that all checks of the script passed.
func (s *Streams) AgreementChecks() (out []Check) {
	if s.server != nil {
		unexplained := s.unexplained.sentences()
		limit, actual := "agrees", firstText(unexplained, "agrees")
		if s.Server.Confirms {
			limit = "agrees, except for faults found"
			actual = "differs on " + format.Plural(s.differingClients, "stream", "streams") + ", where faults were found"
		}
		out = append(out, Check{
			ID: CheckServerCount, Name: "server's own count", Limit: limit, Actual: actual, Pass: len(unexplained) == 0, Why: "a difference means a loss or a miscount",
			Reasons: unexplained,
		}.notJudgedIf(s.Connections.Opened == 0, reasonNoStream).notJudgedIf(s.allEndedEarly(), reasonEndedEarly))
	}
	var failed []string
	var total int64
	for _, c := range s.m.Checks {
		total += c.Passes + c.Fails
		if c.Fails > 0 {
			failed = append(failed, fmt.Sprintf("the check %q failed %d of %s", c.Name, c.Fails, format.Plural(c.Passes+c.Fails, "time", "times")))
		}
	}
	hasChecks := len(s.m.Checks) > 0
	failed = append(failed, s.missingChecks()...)
	scriptCheck := Check{
		ID: CheckScript, Name: "script checks", Limit: "all pass", Actual: firstText(failed, fmt.Sprintf("%d of %d", total, total)),
		Pass: len(failed) == 0, Why: "clients fail to connect, to disconnect or to receive every message", weight: byClock,
		faults:        faults{failedCheck, maxFailedClients(s.m)},
		loadDependent: true, // a script that searches for the breaking point makes no checks
		Reasons:       failed,
	}
	switch {
	case !scriptCheck.Pass && s.hasUnconfirmed():
		scriptCheck = scriptCheck.NotJudged(reasonUnconfirmed)
	case !hasChecks && s.allEndedEarly():
		scriptCheck = scriptCheck.NotJudged(reasonEndedEarly)
	case !hasChecks && s.observedClients() == 0:
		scriptCheck = scriptCheck.NotJudged(reasonUnobserved)
	}
	return append(out, scriptCheck)
}

// reasonUnconfirmed is the reason for not judging the script checks. A runner expects all numbers of a topic, because
// it does not know which messages the service confirmed.
const reasonUnconfirmed = "the script also expects messages that the service did not confirm"

func (s *Streams) hasUnconfirmed() bool {
	p := s.Messages.Published
	return p != nil && p.Confirmed < p.Sent
}

const reasonEndedEarly = "all runners ended early"

// allEndedEarly reports whether clients were observed, but none of them to the end of the run.
func (s *Streams) allEndedEarly() bool {
	return s.Connections.Unwatched > 0 && s.Connections.Unwatched == s.observedClients()
}

// maxFailedClients returns how many clients did not pass the script check that passed least often. A client that did not
// connect or was disconnected fails a check, or does not reach it.
func maxFailedClients(m *shard.Merged) (count uint64) {
	for _, c := range m.Checks {
		count = max(count, uint64(max(int64(m.Plan.Connections)-c.Passes, 0)))
	}
	return count
}

// missingChecks describes the script checks that did not run exactly once per client. A check that did not run cannot
// fail. Clients whose runner ended early may lack a check.
func (s *Streams) missingChecks() (out []string) {
	observed := s.observedClients()
	for _, c := range s.m.Checks {
		if total := int(c.Passes + c.Fails); total > s.Connections.Planned || total < observed-s.Connections.Unwatched {
			out = append(out, fmt.Sprintf("the check %q ran %s for %s", c.Name,
				format.Plural(total, "time", "times"), format.Count(observed, "client")))
		}
	}
	if len(s.m.Checks) == 0 {
		out = append(out, "the script ran no check")
	}
	return out
}

// exceeds reports whether the entry lists more messages than arrived. Duplicates count as arrived: if the service has a
// shorter interval than planned, the count by interval counts each additional message as a duplicate.
func (e *ServerEntry) exceeds(r *shard.Connection) bool {
	switch {
	case e == nil || r.Streams == 0 || idInUse(r):
		return false
	case r.Numbered || r.Received == 0:
		return e.Last > r.Last
	}
	return e.First <= 1 && e.Sent > r.Received+r.Corrupted+r.Duplicated
}

// compare compares a client with the server's entry, and adds the entry to the sums. sent is the number of messages
// that the server sent after the last one that arrived; unnoticed is how many of these the client did not count as
// missing. d is any other mismatch. The entry is ignored if another client used the id first, or if the client had
// no stream. It is also ignored if the runner ended early or replaced another one.
func (s *Streams) compare(r *shard.Connection, e *ServerEntry) (sent, unnoticed uint64, d difference) {
	if s.server == nil || r.Streams == 0 || idInUse(r) {
		return 0, 0, d
	}
	if !s.m.Runners[r.Runner].IsComplete() {
		s.Server.Uncompared += r.Received
		return 0, 0, d
	}
	if e == nil {
		return 0, 0, difference{differsNoEntry, fmt.Sprintf("the server's ledger has no entry for %s, which had a stream", r.ID)}
	}
	s.Server.Sent += e.Sent
	s.Runners[r.Runner].ServerSent += e.Sent
	if r.IsDisconnected() && e.Sent >= r.Arrived()+r.Messages {
		return 0, 0, d // messages that were in transit when the client lost its stream count as undetectable losses
	}
	if !r.Numbered && r.Received > 0 {
		return s.compareCount(r, e)
	}
	switch {
	case e.Last > r.Last:
		sent = e.Last - r.Last
	case e.Last < r.Last:
		return 0, 0, difference{differsLast, fmt.Sprintf("%s received number %d, but the last number in the server's ledger is %d", r.ID, r.Last, e.Last)}
	}
	if arrived := r.Received + r.Corrupted + r.Messages; e.First <= 1 && r.Numberings < 2 && e.Sent != arrived {
		noun := s.m.Service.Noun()
		sentText := format.Plural(e.Sent, noun, noun+"s")
		if r.Messages > 0 {
			sentText = format.Plural(e.Sent, noun+" or message", noun+"s and messages")
		}
		d = differsBy(e, sentText, arrived)
	}
	return sent, sent - min(sent, r.Tail), d
}

// compareCount does the same as compare for a client whose messages have no numbers.
func (s *Streams) compareCount(r *shard.Connection, e *ServerEntry) (sent, unnoticed uint64, d difference) {
	arrived := r.Received + r.Corrupted
	switch {
	case e.First > 1: // the server's count includes messages sent before this run
		return 0, 0, d
	case e.Sent < arrived:
		noun := s.m.Service.Noun()
		return 0, 0, differsBy(e, format.Plural(e.Sent, noun, noun+"s"), arrived)
	}
	missing := e.Sent - arrived
	return missing - min(missing, r.Lost+r.Unsent), missing - min(missing, r.Missed()), d
}

// A difference is a mismatch between the server's entry and the client's counts. The zero value means no mismatch.
type difference struct {
	kind differenceKind
	text string
}

type differenceKind int

const (
	noDifference   differenceKind = iota
	differsNoEntry                // the server's ledger has no entry for the client
	differsLast                   // a number arrived that is higher than the last one in the server's ledger
	differsSent                   // the counts differ
	differenceKinds
)

func differsBy(e *ServerEntry, sentText string, arrived uint64) difference {
	return difference{differsSent, fmt.Sprintf("the server's ledger lists %s as sent to %s, but %d arrived", sentText, e.ID, arrived)}
}

// differences counts the differences of each kind, and keeps the text of the first.
type differences struct {
	count [differenceKinds]int
	first [differenceKinds]string
}

func (d *differences) add(mismatch difference) {
	if d.count[mismatch.kind]++; d.count[mismatch.kind] == 1 {
		d.first[mismatch.kind] = mismatch.text
	}
}

func (d *differences) sentences() (out []string) {
	for kind, n := range d.count {
		switch {
		case n == 1:
			out = append(out, d.first[kind])
		case n > 1:
			out = append(out, fmt.Sprintf("%s; %s in the same way", d.first[kind], format.Plural(n-1, "more client differs", "more clients differ")))
		}
	}
	return out
}

// idInUse reports whether another client used the id of a client before the first stream of this client opened.
func idInUse(r *shard.Connection) bool {
	return slices.ContainsFunc(r.Refusals, func(f ledger.Refusal) bool { return f.Reason == causeConflict && f.First < r.OpenedAt })
}

// addTail creates one finding from all evidence of messages missing after the last one that arrived, so that each
// message is listed once. The interval shows how many messages were due; the server's ledger shows how many were sent.
// It returns the record with that finding, and any other mismatch with the server's entry.
func (s *Streams) addTail(i int, r *shard.Connection, e *ServerEntry) (*shard.Connection, difference) {
	sent, unnoticed, mismatch := s.compare(r, e)
	if unnoticed > 0 && !numbersKnown(r) && r.Tail == 0 && r.State == ledger.Completed { // the lost messages may be anywhere in the stream
		r = s.addFinding(i, r, ledger.Finding{Kind: ledger.KindLost, Count: unnoticed, At: r.ClosedAt, Source: ledger.SourceServer, Sent: unnoticed})
		r.Lost += unnoticed
		return r, mismatch
	}
	if r.Tail+unnoticed == 0 {
		return r, mismatch
	}
	r = s.mutableConnection(i, r)
	r.Tail += unnoticed
	first := r.Last + 1
	if !numbersKnown(r) {
		first = r.Arrived() + r.Lost + r.Unsent + 1
	}
	tail := ledger.Finding{Kind: ledger.KindTail, From: first, To: first + r.Tail - 1, Count: r.Tail, At: r.ClosedAt, Sent: min(sent, r.Tail)}
	if tail.Sent > 0 {
		tail.Source = ledger.SourceServer
	}
	findings := slices.DeleteFunc(slices.Clone(r.Findings), func(f ledger.Finding) bool {
		if f.Kind == ledger.KindTail {
			tail.At = f.At
		}
		return f.Kind == ledger.KindTail
	})
	r.Findings = append(findings, tail)
	return r, mismatch
}

// numbersKnown reports whether the number of the next message is known: the messages have numbers, or none arrived.
func numbersKnown(r *shard.Connection) bool { return r.Numbered || r.Arrived() == 0 }
