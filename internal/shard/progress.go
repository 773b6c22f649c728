package shard

import "github.com/sse-soak/sse-soak/internal/ledger"

// Progress is the state of a runner, for display only. The runner writes it as a JSON line each second to the file
// descriptor PROGRESS_FD.
type Progress struct {
	Open            int `json:"open"`
	Opened          int `json:"opened"` // clients that had a stream
	Completed       int `json:"completed"`
	Refused         int `json:"refused"`
	Dropped         int `json:"dropped"`
	DroppedByScript int `json:"dropped_by_script,omitempty"` // of disturbed clients; Dropped excludes them
	Reconnected     int `json:"reconnected"`                 // streams that were opened after a disconnect
	ledger.Counts
	Lateness *Packed `json:"lateness,omitempty"` // of all messages so far
	// Undecided is the number of due messages that are neither received nor missed yet.
	Undecided uint64 `json:"undecided,omitempty"`

	Published uint64 `json:"published,omitempty"` // messages that the runner published
	Confirmed uint64 `json:"confirmed,omitempty"` // messages that the service confirmed

	// Trouble describes an operation that the runner retries, such as writing a checkpoint.
	Trouble string `json:"trouble,omitempty"`

	// Stage, Requests and Failed apply to suites that make requests.
	Stage    string `json:"stage,omitempty"`    // name of the current stage
	Requests int64  `json:"requests,omitempty"` // number of requests that ended
	Failed   int64  `json:"failed,omitempty"`   // number of requests that failed

	// Buckets has the buckets of the series that ended since the last line, and the current one.
	Buckets  []Bucket     `json:"buckets,omitempty"`
	Points   []Bucket     `json:"points,omitempty"`   // replaces Buckets in a short run
	Found    []FoundFault `json:"found,omitempty"`    // faults since the last line
	Unlisted int          `json:"unlisted,omitempty"` // number of further faults
	// Responses has the buckets of finite responses, in the same way as Buckets.
	Responses []ResponseBucket `json:"responses,omitempty"`
}

// A FoundFault reports a fault of a client or a response at the time of its detection. The ledgers have the final
// counts.
type FoundFault struct {
	AtMS int64  `json:"at_ms"` // Unix time
	ID   string `json:"id"`
	Text string `json:"text"` // such as "3 missed"
}

// Count adds a client. It does not change Open.
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
	case ledger.Unfinished, ledger.Planned, ledger.Connecting, ledger.Open, ledger.Waiting: // not shown
	}
}

// CountSteady adds a steady client; see ledger.Steady. It does not change Open.
func (p *Progress) CountSteady(s ledger.SteadySums) {
	p.Opened++
	p.Received += s.Received
	p.Undetectable += s.Undetectable
}

// CountDisturbed adds a client that the script disturbs. Its end does not count in Dropped, and the messages that
// it missed do not count, because the script caused both.
func (p *Progress) CountDisturbed(r *ledger.Record) {
	dropped, counts := p.Dropped, p.Counts
	p.Count(r)
	p.DroppedByScript += p.Dropped - dropped
	p.Dropped = dropped
	p.Lost, p.Unsent, p.Tail = counts.Lost, counts.Unsent, counts.Tail
}

// Add adds the counts of another runner, and adopts its stage if it has one. Add ignores the other fields.
func (p *Progress) Add(o Progress) {
	p.Counts.Add(o.Counts)
	p.Undecided += o.Undecided
	p.Open += o.Open
	p.Opened += o.Opened
	p.Completed += o.Completed
	p.Refused += o.Refused
	p.Dropped += o.Dropped
	p.DroppedByScript += o.DroppedByScript
	p.Reconnected += o.Reconnected
	p.Published += o.Published
	p.Confirmed += o.Confirmed
	p.Requests += o.Requests
	p.Failed += o.Failed
	if o.Stage != "" {
		p.Stage = o.Stage
	}
}

// CountRequests adds the requests of a metric. It ignores metrics other than RequestDuration.
func (p *Progress) CountRequests(m *Metric) {
	if m.Name != RequestDuration {
		return
	}
	p.Requests += m.Count
	if code, hasCode := m.Tags[TagCode]; hasCode && code != CodeOK {
		p.Failed += m.Count
	}
}

// CountResponses adds finite responses. All responses that are neither complete nor abandoned count as failed.
func (p *Progress) CountResponses(r *Responses) {
	count := r.Ended()
	p.Requests += count
	p.Failed += count - r.States[ledger.ResponseComplete] - r.States[ledger.ResponseAbandoned]
}

// RequestProgress returns the progress of a runner according to its checkpoint, for suites that make requests.
func (s *Shard) RequestProgress() (p Progress) {
	last := int64(0)
	for i := range s.Metrics {
		m := &s.Metrics[i]
		p.CountRequests(m)
		if stage := m.Tags[TagStage]; m.Name == RequestDuration && stage != Other && m.LastUS > last {
			p.Stage, last = stage, m.LastUS
		}
	}
	if s.Responses != nil {
		p.CountResponses(s.Responses)
		p.Responses = s.Responses.Series
	}
	return p
}
