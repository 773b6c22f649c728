package shard

import "github.com/sse-soak/sse-soak/internal/ledger"

// Progress is what a runner says of itself every second while it runs, one JSON line each on
// the descriptor that PROGRESS_FD names. It is for eyes only: no verdict rests on it.
type Progress struct {
	Open        int `json:"open"`
	Opened      int `json:"opened"` // connections that ever had a stream
	Completed   int `json:"completed"`
	Refused     int `json:"refused"`
	Dropped     int `json:"dropped"`
	Aside       int `json:"aside,omitempty"` // streams that ended to which the script does something: they are not among Dropped
	Reconnected int `json:"reconnected"`     // streams that were opened after another was lost
	ledger.Counts
	Lateness *Packed `json:"lateness,omitempty"`
	// Undecided are noops that are due and neither came nor count as missed yet.
	Undecided uint64 `json:"undecided,omitempty"`

	// Of the runner that publishes: messages.
	Published uint64 `json:"published,omitempty"`
	Confirmed uint64 `json:"confirmed,omitempty"`

	// Trouble is what the runner tries again, such as to write a checkpoint.
	Trouble string `json:"trouble,omitempty"`

	// Of a suite that makes requests.
	Stage    string `json:"stage,omitempty"`
	Requests int64  `json:"requests,omitempty"`
	Failed   int64  `json:"failed,omitempty"`

	// Of the time since the line before: the buckets that ended, and the present one as far as it has come, which is said
	// again with each line; and what was found, or counted where it was too much to list.
	Buckets  []Bucket `json:"buckets,omitempty"`
	Found    []Found  `json:"found,omitempty"`
	Unlisted int      `json:"unlisted,omitempty"`
}

// Found is something that went wrong on a connection, as it is noticed. The ledgers have what came of it.
type Found struct {
	AtMS int64  `json:"at_ms"` // Unix
	ID   string `json:"id"`
	What string `json:"what"` // "3 missed"
}

// Count counts one connection in.
func (p *Progress) Count(r *ledger.Record) {
	p.Counts.Add(r.Counts)
	if r.Streams > 0 {
		p.Opened++
		p.Reconnected += r.Streams - 1
	}
	switch r.State {
	case ledger.Completed:
		p.Completed++
	case ledger.Refused:
		p.Refused++
	case ledger.Dropped:
		p.Dropped++
	case ledger.Unfinished, ledger.Planned, ledger.Connecting, ledger.Open, ledger.Waiting: // nobody shows these
	}
}

// CountSteady is Count for a connection of which there is no more to say.
func (p *Progress) CountSteady(s ledger.Steady) {
	p.Opened++
	p.Received += s.Received
	p.Hidden += s.Hidden
}

// CountAside counts in one to which the script does something, as to vanish: that it ended is no news of the service.
func (p *Progress) CountAside(r *ledger.Record) {
	before := p.Dropped
	p.Count(r)
	p.Aside += p.Dropped - before
	p.Dropped = before
}

// Add adds what another runner says.
func (p *Progress) Add(o Progress) {
	p.Counts.Add(o.Counts)
	p.Undecided += o.Undecided
	p.Open += o.Open
	p.Opened += o.Opened
	p.Completed += o.Completed
	p.Refused += o.Refused
	p.Dropped += o.Dropped
	p.Aside += o.Aside
	p.Reconnected += o.Reconnected
	p.Published += o.Published
	p.Confirmed += o.Confirmed
	p.Requests += o.Requests
	p.Failed += o.Failed
	if o.Stage != "" {
		p.Stage = o.Stage
	}
}
