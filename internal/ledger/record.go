package ledger

import "time"

// A Record is what is stored of one connection. Times are instants of the runner, in nanoseconds; a
// reader adds the runner's start.
type Record struct {
	ID       string `json:"id"`
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"` // why the last stream or attempt ended
	Numbered bool   `json:"numbered,omitempty"`

	Attempts int           `json:"attempts"`
	Streams  int           `json:"streams"`
	Connect  time.Duration `json:"connect_ns"` // first dial to first headers; of one refused: to its end
	OpenedAt Instant       `json:"opened_ns"`
	ClosedAt Instant       `json:"closed_ns"`
	Held     time.Duration `json:"held_ns"` // headers to end, summed over streams
	Open     time.Duration `json:"open_ns"` // the same, but only to the request for the end
	Away     time.Duration `json:"away_ns"` // without a stream: all outages, with the first connect
	LastAt   Instant       `json:"last_ns"` // when the last noop came, or the headers of the last stream after it

	Counts

	// Interval is the average time between two noops, 0 if too few came to measure it; IntervalError is
	// by how much it may be off.
	Interval      time.Duration `json:"interval_ns,omitempty"`
	IntervalError time.Duration `json:"interval_error_ns,omitempty"`

	Others []EventCount `json:"others,omitempty"` // events with a name, which are no noops

	Last        uint64        `json:"last,omitempty"`       // highest number since the server last began at 1
	Numberings  int           `json:"numberings,omitempty"` // how often the server began at 1
	MaxGap      time.Duration `json:"max_gap_ns"`
	MaxLateness time.Duration `json:"max_lateness_ns"`

	// Of a described service. What came is First to Last without Holes, and Unplaced corrupted messages somewhere.
	First         uint64        `json:"first,omitempty"`
	Holes         []Range       `json:"holes,omitempty"`
	Unplaced      uint64        `json:"unplaced,omitempty"`
	UnplacedAt    []Instant     `json:"unplaced_at_ns,omitempty"` // arrival times of those of Unplaced that may be any message missing then
	Spans         []Span        `json:"spans,omitempty"`          // when streams were open
	UnlistedSpans uint64        `json:"unlisted_spans,omitempty"` // beyond the bound
	Unanswered    time.Duration `json:"unanswered_ns,omitempty"`  // for how long the next stream was asked for in vain at the request for the end
	MaxSilence    time.Duration `json:"max_silence_ns,omitempty"` // the longest time without any sign of life on an open stream
	SilentFrom    Instant       `json:"silent_from_ns,omitempty"` // when it began

	Findings []Finding `json:"findings,omitempty"`
	Unlisted int       `json:"unlisted,omitempty"` // findings beyond the bound: counted, not listed

	Refusals  []Refusal     `json:"refused,omitempty"`          // attempts to connect that failed, by reason
	Longest   Outage        `json:"longest_outage,omitzero"`    // may be the first connect, or an outage that no stream ended
	Survived  int           `json:"outages_survived,omitempty"` // streams that were lost, and followed by another
	MaxOutage time.Duration `json:"max_outage_ns,omitempty"`    // of these, the longest
	Outages   []Outage      `json:"outages,omitempty"`          // the first of these
	// LastOutage is the last outage, if no later message shows its losses: the end was requested before the client had
	// reconnected, or before the first message was due on the new stream. Otherwise it is nil.
	LastOutage *Outage `json:"last_outage,omitempty"`

	Cuts *Cuts `json:"cuts,omitempty"` // that the client made itself; nil where the run makes none
}

// Faultless says that the stream was held to the end and every noop came once, in
// order and intact. Lateness is no fault here.
func (r Record) Faultless() bool {
	return r.Sound() && r.Received > 0
}

// Sound is Faultless for a stream to which nobody may have published anything.
func (r Record) Sound() bool { return r.State == Completed && r.Missed()+r.Faults() == 0 }

// RefusedAttempts is how many attempts to connect failed.
func (r Record) RefusedAttempts() (n int) {
	for _, f := range r.Refusals {
		n += f.Count
	}
	return n
}

// Kind names what a finding is.
type Kind string

// The kinds of findings.
const (
	KindLost       Kind = "lost"       // numbers From..To are missing; From is 0 if the numbers are not known
	KindUnsent     Kind = "unsent"     // Count noops never came; From is the ordinal of the first
	KindTail       Kind = "tail"       // Count noops were still owed when the stream ended
	KindDuplicated Kind = "duplicated" // number (or ordinal) From came again
	KindReordered  Kind = "reordered"  // number From came after a higher one
	KindCorrupted  Kind = "corrupted"  // Note holds what came instead of `0`
	KindLate       Kind = "late"       // number From came Lateness too late
	KindDropped    Kind = "dropped"
	KindRefused    Kind = "refused"
	KindRestarted  Kind = "restarted" // the server began to number at 1 again
	KindCut        Kind = "cut"       // a stream ended before the lifetime that the service gives it
	KindOverdue    Kind = "overdue"   // a stream was open for longer than the lifetime that the service gives it
	KindStrayed    Kind = "strayed"   // a message of another topic came; Note holds it
	KindAnnounced  Kind = "announced" // the service said that messages are missing
	KindIDReset    Kind = "id_reset"  // a reconnect without an id: the event Note had reset it at At, after message From
	KindNoID       Kind = "no_id"     // a reconnect without an id: none had arrived
)

// A Finding is one thing that was wrong on a connection.
type Finding struct {
	Kind     Kind          `json:"kind"`
	From     uint64        `json:"from,omitempty"`
	To       uint64        `json:"to,omitempty"`
	Count    uint64        `json:"count,omitempty"`
	At       Instant       `json:"at_ns"` // when it was noticed
	Lateness time.Duration `json:"lateness_ns,omitempty"`
	Note     string        `json:"note,omitempty"`
	Source   Source        `json:"source,omitempty"` // the evidence for a loss, if it is not the stream itself
	Sent     uint64        `json:"sent,omitempty"`   // how many of Count the server's own ledger lists as sent
}

// A Source is a record of the messages that were sent.
type Source string

// The sources of losses.
const (
	SourceServer    Source = "server"    // the server's own ledger
	SourcePublisher Source = "publisher" // the publisher of the run
)

// find adds a finding, or counts it where there are too many.
func (r *Record) find(f Finding) {
	r.Findings, r.Unlisted = listed(r.Findings, r.Unlisted, f)
}
