package ledger

import (
	"slices"
	"time"
)

// A Record is the stored result of one client. Instants are nanoseconds since the start of the runner.
type Record struct {
	ID       string `json:"id"`
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"`   // reason for the end of the last stream or attempt
	Numbered bool   `json:"numbered,omitempty"` // messages are counted by number, not by interval

	Attempts   int           `json:"attempts"`
	Streams    int           `json:"streams"`
	Connect    time.Duration `json:"connect_ns"` // from the first dial to the first headers, or to the end if refused
	OpenedAt   Instant       `json:"opened_ns"`
	ClosedAt   Instant       `json:"closed_ns"`
	StreamTime time.Duration `json:"stream_ns"` // headers to end, summed over streams
	OpenTime   time.Duration `json:"open_ns"`   // headers to the request to end, summed over streams
	OutageTime time.Duration `json:"outage_ns"` // sum of all outages, including the first connect
	LastAt     Instant       `json:"last_ns"`   // last message; if a stream opened later, its headers

	Counts

	// Interval is the average time between two noops, or 0 if too few noops arrived. IntervalError is its possible error.
	Interval      time.Duration `json:"interval_ns,omitempty"`
	IntervalError time.Duration `json:"interval_error_ns,omitempty"`

	Others []EventCount `json:"others,omitempty"` // named events that are not messages

	Last        uint64        `json:"last,omitempty"`       // highest number of the latest sequence; see Numberings
	Numberings  int           `json:"numberings,omitempty"` // number of sequences that started at 1; 0 counts as 1
	MaxGap      time.Duration `json:"max_gap_ns"`
	MaxLateness time.Duration `json:"max_lateness_ns"`

	// The fields up to UnlistedSpans are set only if Config.Counting is Numbered. The numbers from First to Last arrived,
	// except Holes and lost numbers.
	First    uint64  `json:"first,omitempty"`
	Holes    []Range `json:"holes,omitempty"`
	Unplaced uint64  `json:"unplaced,omitempty"` // corrupted messages without an assumed number
	// UnplacedAt lists the arrival times of Unplaced messages, each of which may be any message that was missing then.
	UnplacedAt    []Instant   `json:"unplaced_at_ns,omitempty"`
	Spans         []Span      `json:"spans,omitempty"`          // when streams were open
	Deviations    *Deviations `json:"deviations,omitempty"`     // from the Log of the topic, or nil
	UnlistedSpans uint64      `json:"unlisted_spans,omitempty"` // number of spans beyond the limit

	Unanswered time.Duration `json:"unanswered_ns,omitempty"`  // age of the attempt in progress at the request to end
	MaxSilence time.Duration `json:"max_silence_ns,omitempty"` // longest time without a sign of life on a stream
	SilentFrom Instant       `json:"silent_from_ns,omitempty"` // start of the longest silence

	Findings []Finding `json:"findings,omitempty"`
	Unlisted int       `json:"unlisted,omitempty"` // number of findings beyond the limit

	Refusals  []Refusal     `json:"refused,omitempty"`          // failed attempts to connect, by reason
	Longest   Outage        `json:"longest_outage,omitzero"`    // may be the first connect, or the outage at the end
	Survived  int           `json:"outages_survived,omitempty"` // outages that ended with a new stream
	MaxOutage time.Duration `json:"max_outage_ns,omitempty"`    // longest outage that ended with a new stream
	Outages   []Outage      `json:"outages,omitempty"`          // the earliest outages that ended with a new stream
	// LastOutage is the last outage if no later message shows its losses, and otherwise nil. It is set only if the end
	// was requested before the client had reconnected, or before the first message was due on the new stream.
	LastOutage *Outage `json:"last_outage,omitempty"`

	Cuts *Cuts `json:"cuts,omitempty"` // disconnects and pauses by the client, or nil
}

// IsDisconnected reports whether the client was reconnecting when the end of its streams was requested, and opened no
// stream afterward.
func (r Record) IsDisconnected() bool { return r.LastOutage != nil && r.LastOutage.From >= r.ClosedAt }

// ReceivedWithoutFault reports whether the state is Completed, at least one message arrived, none is missing, and each
// arrived once, in order and intact. Lateness is not a fault here.
func (r Record) ReceivedWithoutFault() bool {
	return r.HasNoFault() && r.Received > 0
}

// HasNoFault is ReceivedWithoutFault without the condition that a message arrived.
func (r Record) HasNoFault() bool { return r.State == Completed && r.Missed()+r.Faults() == 0 }

// RefusedAttempts returns the number of failed attempts to connect.
func (r Record) RefusedAttempts() (n int) {
	for _, f := range r.Refusals {
		n += f.Count
	}
	return n
}

// HasReceived reports whether a number is between First and Last and in none of the Holes. It returns true for lost
// numbers that Holes omits. It applies only if Config.Counting is Numbered.
func (r *Record) HasReceived(number uint64) bool {
	return r.First > 0 && r.First <= number && number <= r.Last &&
		!slices.ContainsFunc(r.Holes, func(hole Range) bool { return hole[0] <= number && number <= hole[1] })
}

// A Kind is the kind of a finding.
type Kind string

// The kinds of findings.
const (
	KindLost       Kind = "lost"       // numbers From..To are missing; From is 0 if the numbers are not known
	KindUnsent     Kind = "unsent"     // Count noops never arrived; From is the ordinal of a noop next to them
	KindTail       Kind = "tail"       // Count noops were still expected when the stream ended
	KindDuplicated Kind = "duplicated" // number (or ordinal) From arrived twice, the second time after To if To > 0
	KindReordered  Kind = "reordered"  // number From arrived after a higher one
	KindCorrupted  Kind = "corrupted"  // message From (a number or an ordinal; 0 if unknown) was not intact; Note is the data or the reason
	KindLate       Kind = "late"       // number (or ordinal) From was late by Lateness
	KindDropped    Kind = "dropped"    // the stream ended before its end was requested; Note is the reason
	KindRefused    Kind = "refused"    // no stream was opened; Note is the reason
	KindRestarted  Kind = "restarted"  // the server restarted its numbers at 1 after number From
	KindEndedEarly Kind = "cut"        // a stream ended before its minimum lifetime; Lateness is the time for which it was open
	KindOverdue    Kind = "overdue"    // a stream was open for longer than its maximum lifetime and a tolerance; Lateness is the time for which it was open
	KindMisrouted  Kind = "strayed"    // a message of another topic arrived; Note is its data
	KindAnnounced  Kind = "announced"  // the service announced that messages are missing
	KindIDReset    Kind = "id_reset"   // a reconnect without an id: the event Note reset the id at At, after message From
	KindNoID       Kind = "no_id"      // a reconnect without an id, because none had arrived
)

// A Finding is one fault of a client.
type Finding struct {
	Kind     Kind          `json:"kind"`
	From     uint64        `json:"from,omitempty"`
	To       uint64        `json:"to,omitempty"`
	Count    uint64        `json:"count,omitempty"`
	At       Instant       `json:"at_ns"` // time of detection; KindIDReset: of the reset; lost published messages: of the publication
	Lateness time.Duration `json:"lateness_ns,omitempty"`
	Note     string        `json:"note,omitempty"`
	Source   Source        `json:"source,omitempty"` // evidence other than the stream and the data
	Sent     uint64        `json:"sent,omitempty"`   // part of Count that the server's own ledger lists as sent
}

// A Source is the evidence for a finding.
type Source string

// The sources of evidence. SourceNumber is for corrupted noops; the others show that missing messages were sent.
const (
	SourceServer      Source = "server"      // the server's own ledger
	SourcePublisher   Source = "publisher"   // the publisher of the run
	SourceSubscribers Source = "subscribers" // other clients of the topic, which received the messages
	SourceNumber      Source = "number"      // an impossible or missing number of a noop; Note is the reason
)

// AddFinding adds a finding, or counts it as unlisted if there are too many.
func (r *Record) AddFinding(f Finding) {
	r.Findings, r.Unlisted = appendFinding(r.Findings, r.Unlisted, f)
}
