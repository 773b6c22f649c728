package shard

import "github.com/sse-soak/sse-soak/internal/ledger"

// Progress is what a runner says of itself every second while it runs, one JSON line each on
// the descriptor that PROGRESS_FD names. It is for eyes only: no verdict rests on it.
type Progress struct {
	Open      int     `json:"open"`
	Opened    int     `json:"opened"` // connections that ever held a stream
	Ended     int     `json:"ended"`  // connections that are over, well or not
	Refused   int     `json:"refused"`
	Dropped   int     `json:"dropped"`
	Reconnect int     `json:"reconnected"`
	Received  uint64  `json:"received"`
	Missed    uint64  `json:"missed"`
	Faults    uint64  `json:"faults"` // duplicated, reordered, corrupted
	Late      uint64  `json:"late"`
	Lateness  *Packed `json:"lateness,omitempty"`

	// Trouble is what the runner tries again, such as to write a checkpoint.
	Trouble string `json:"trouble,omitempty"`

	// Of a suite that makes requests.
	Stage    string `json:"stage,omitempty"`
	Requests int64  `json:"requests,omitempty"`
	Failed   int64  `json:"failed,omitempty"`
}

// Add counts one connection in.
func (p *Progress) Add(r ledger.Record) {
	if r.Streams > 0 {
		p.Opened++
		p.Reconnect += r.Streams - 1
	}
	switch r.State {
	case ledger.Refused:
		p.Refused++
		p.Ended++
	case ledger.Dropped:
		p.Dropped++
		p.Ended++
	case ledger.Completed, ledger.Unfinished:
		p.Ended++
	case ledger.Planned, ledger.Connecting, ledger.Open, ledger.Waiting:
	}
	p.Received += r.Received
	p.Missed += r.Missed()
	p.Faults += r.Duplicated + r.Reordered + r.Corrupted
	p.Late += r.Late
}

// AddRunner adds what another runner says.
func (p *Progress) AddRunner(o Progress) {
	p.Open += o.Open
	p.Opened += o.Opened
	p.Ended += o.Ended
	p.Refused += o.Refused
	p.Dropped += o.Dropped
	p.Reconnect += o.Reconnect
	p.Received += o.Received
	p.Missed += o.Missed
	p.Faults += o.Faults
	p.Late += o.Late
	p.Requests += o.Requests
	p.Failed += o.Failed
	if o.Stage != "" {
		p.Stage = o.Stage
	}
}
