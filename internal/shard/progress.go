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
	Reconnected int `json:"reconnected"` // streams that were opened after another was lost
	ledger.Counts
	Lateness *Packed `json:"lateness,omitempty"`

	// Of the runner that publishes: messages.
	Published uint64 `json:"published,omitempty"`
	Confirmed uint64 `json:"confirmed,omitempty"`

	// Trouble is what the runner tries again, such as to write a checkpoint.
	Trouble string `json:"trouble,omitempty"`

	// Of a suite that makes requests.
	Stage    string `json:"stage,omitempty"`
	Requests int64  `json:"requests,omitempty"`
	Failed   int64  `json:"failed,omitempty"`
}

// Count counts one connection in.
func (p *Progress) Count(r ledger.Record) {
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

// Add adds what another runner says.
func (p *Progress) Add(o Progress) {
	p.Counts.Add(o.Counts)
	p.Open += o.Open
	p.Opened += o.Opened
	p.Completed += o.Completed
	p.Refused += o.Refused
	p.Dropped += o.Dropped
	p.Reconnected += o.Reconnected
	p.Published += o.Published
	p.Confirmed += o.Confirmed
	p.Requests += o.Requests
	p.Failed += o.Failed
	if o.Stage != "" {
		p.Stage = o.Stage
	}
}
