package ledger

// Counts contains the numbers of messages of one client by outcome, or the sums over clients. A new count needs a field
// in Counts, an entry in list, and a field in Totals if reports show it.
type Counts struct {
	Received   uint64 `json:"received"`           // distinct intact messages
	Lost       uint64 `json:"lost"`               // skipped numbers that did not arrive
	Unsent     uint64 `json:"unsent"`             // empty slots before a later message, or before the last stream
	Tail       uint64 `json:"tail"`               // empty slots at the end
	Duplicated uint64 `json:"duplicated"`         // arrived twice
	Reordered  uint64 `json:"reordered"`          // arrived after a higher number
	Corrupted  uint64 `json:"corrupted"`          // arrived, but not intact
	Late       uint64 `json:"late"`               // arrived later than Config.LatenessLimit permits
	Messages   uint64 `json:"messages,omitempty"` // distinct numbered events that are not noops
	// Undetectable is the number of undetectable losses (docs/accounting.md).
	Undetectable uint64 `json:"undetectable,omitempty"`
	// PossibleCopies counts the noops that followed a late noop before the next slot, in the count by interval. Each
	// may be a copy in place of a lost noop, so Undetectable includes it. Even the server's count of sent noops does
	// not show such a loss.
	PossibleCopies uint64 `json:"possible_copies,omitempty"`
	// UnevenGaps counts the gaps between noops whose length is not near a multiple of the interval; see checkGap.
	UnevenGaps uint64 `json:"uneven_gaps,omitempty"`

	// Most of the following counts apply to services other than noop.
	Repeated      uint64 `json:"repeated,omitempty"`  // copies that the service may send, including histories
	Foreign       uint64 `json:"foreign,omitempty"`   // messages of other publishers, or of another run
	Misrouted     uint64 `json:"misrouted,omitempty"` // messages of this run for another topic
	Heartbeats    uint64 `json:"heartbeats,omitempty"`
	Unchecked     uint64 `json:"unchecked,omitempty"`  // events that match message.event and are not checked
	Unnumbered    uint64 `json:"unnumbered,omitempty"` // part of Corrupted: no number at message.seq
	Uncounted     uint64 `json:"uncounted,omitempty"`  // blocks that are neither message nor heartbeat
	AnnouncedGaps uint64 `json:"gaps,omitempty"`       // announcements of the service that messages are missing
	EndedEarly    uint64 `json:"cut,omitempty"`        // streams that ended before their minimum lifetime
	Overdue       uint64 `json:"overdue,omitempty"`    // streams that were open for longer than their maximum lifetime
	IDResets      uint64 `json:"id_resets,omitempty"`  // reconnects without an id because the service had reset it
	NoIDs         uint64 `json:"no_ids,omitempty"`     // reconnects without an id because the service had sent none
}

func (c *Counts) list() [24]*uint64 {
	return [...]*uint64{
		&c.Received, &c.Lost, &c.Unsent, &c.Tail, &c.Duplicated, &c.Reordered, &c.Corrupted, &c.Late, &c.Messages, &c.Undetectable, &c.PossibleCopies, &c.UnevenGaps,
		&c.Repeated, &c.Foreign, &c.Misrouted, &c.Heartbeats, &c.Unchecked, &c.Unnumbered, &c.Uncounted, &c.AnnouncedGaps, &c.EndedEarly, &c.Overdue,
		&c.IDResets, &c.NoIDs,
	}
}

// Add adds the counts of another client, or another sum.
func (c *Counts) Add(other Counts) {
	to := c.list()
	for i, n := range other.list() {
		*to[i] += *n
	}
}

// Max returns the highest of the counts.
func (c Counts) Max() (highest uint64) {
	for _, n := range c.list() {
		highest = max(highest, *n)
	}
	return highest
}

// Arrived returns the number of distinct messages that arrived.
func (c *Counts) Arrived() uint64 { return c.Received + c.Corrupted }

// Missed returns the number of expected messages that did not arrive.
func (c Counts) Missed() uint64 { return c.Lost + c.Unsent + c.Tail }

// Expected returns the number of expected messages.
func (c Counts) Expected() uint64 { return c.Arrived() + c.Missed() }

// Faults returns the number of duplicated, reordered, corrupted and misrouted messages.
func (c Counts) Faults() uint64 { return c.Duplicated + c.Reordered + c.Corrupted + c.Misrouted }

// Totals returns the counts as reports show them.
func (c Counts) Totals() Totals {
	return Totals{
		Received: c.Received, Missed: c.Missed(), Expected: c.Expected(),
		Duplicated: c.Duplicated, Reordered: c.Reordered, Corrupted: c.Corrupted, Late: c.Late,
	}
}

// Totals summarizes Counts for files, tables and metrics. Expected is Received + Missed + Corrupted.
type Totals struct {
	Received   uint64 `json:"received"`
	Missed     uint64 `json:"missed"`
	Expected   uint64 `json:"expected"`
	Duplicated uint64 `json:"duplicated"`
	Reordered  uint64 `json:"reordered"`
	Corrupted  uint64 `json:"corrupted"`
	Late       uint64 `json:"late"`
}

// A Total is one field of Totals with its name.
type Total struct {
	Name  string // one word in lower case
	Count uint64
	Fault bool // whether the total counts faults
}

// Each returns the totals in the order of tables.
func (t Totals) Each() []Total {
	return []Total{
		{"expected", t.Expected, false},
		{"received", t.Received, false},
		{"missed", t.Missed, true},
		{"duplicated", t.Duplicated, true},
		{"reordered", t.Reordered, true},
		{"corrupted", t.Corrupted, true},
		{"late", t.Late, false},
	}
}
