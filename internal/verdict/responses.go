package verdict

import (
	"errors"
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Responses counts the responses that end by themselves. Each started response is in exactly one state (see
// ledger.ResponseState).
type Responses struct {
	Started    int64 `json:"started"`
	Complete   int64 `json:"complete"`
	Truncated  int64 `json:"truncated"`
	ErrorEvent int64 `json:"error_event"`
	Refused    int64 `json:"refused"`
	Empty      int64 `json:"empty"`
	Idle       int64 `json:"idle"`
	Lingering  int64 `json:"lingering"`
	AfterDone  int64 `json:"after_done"`
	Unfinished int64 `json:"unfinished"`
	Abandoned  int64 `json:"abandoned"`
	Incomplete int64 `json:"incomplete"` // responses that the service reported as shortened; each also has a state
	Skipped    int64 `json:"skipped"`    // requests that were not started, because too many were in flight
	Good       int64 `json:"good"`       // complete responses within the limits
	// The following quantiles are of complete responses. TTFT, Headers and E2E are measured from the intended start of
	// the request, InterChunkLatency between two chunks.
	TTFT              ResponseQuantiles `json:"ttft_ms"`
	InterChunkLatency ResponseQuantiles `json:"inter_chunk_latency_ms"`
	Headers           ResponseQuantiles `json:"headers_ms"`
	E2E               ResponseQuantiles `json:"e2e_ms"`
	// StartDelay is the time from the intended start of a request to its actual start, for all requests.
	StartDelay ResponseQuantiles `json:"start_delay_ms"`
	// ArrivedTogether is the share of the chunks of complete responses that arrived within a millisecond of the previous
	// one. SingleBurst counts the complete responses whose first chunk arrived together with the last.
	ArrivedTogether float64 `json:"arrived_together"`
	SingleBurst     int64   `json:"single_burst"`
	// Cancellation is the result for abandoned responses; nil if the ledger of the numbered model has none of them, or
	// was not read.
	Cancellation *Cancellation `json:"cancellation,omitempty"`
}

// ResponseQuantiles are quantiles of a merged histogram, in milliseconds.
type ResponseQuantiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func responseQuantiles(h *shard.Histogram) ResponseQuantiles {
	at := func(q float64) float64 { return format.InMilliseconds(h.Quantile(q)) }
	return ResponseQuantiles{P50: at(.5), P90: at(.9), P95: at(.95), P99: at(.99), Max: format.InMilliseconds(h.Max())}
}

// ResponsesOf returns the counts and figures of merged responses. The ledger of the model may be nil.
func ResponsesOf(r *shard.Responses, l ModelLedger) *Responses {
	n := r.States
	out := &Responses{
		Started: r.Ended(), Complete: n[ledger.ResponseComplete], Truncated: n[ledger.ResponseTruncated], ErrorEvent: n[ledger.ResponseError],
		Refused: n[ledger.ResponseRefused], Empty: n[ledger.ResponseEmpty], Idle: n[ledger.ResponseIdle], Lingering: n[ledger.ResponseLingering],
		AfterDone: n[ledger.ResponseAfterDone], Unfinished: n[ledger.ResponseUnfinished], Abandoned: n[ledger.ResponseAbandoned],
		Incomplete: r.Incomplete, Skipped: r.Skipped, Good: r.Good, SingleBurst: r.SingleBurst,
		TTFT: responseQuantiles(r.First), InterChunkLatency: responseQuantiles(r.Gap), Headers: responseQuantiles(r.Headers),
		E2E: responseQuantiles(r.Total), StartDelay: responseQuantiles(r.StartDelay),
	}
	out.Cancellation, out.ArrivedTogether = cancellation(r.Abandoned, l), r.Bursts.Share()
	return out
}

// Chunks returns the counts of chunks. If the numbers of some responses start at 0, responses that start at 1 lost
// their first chunk.
func Chunks(r *shard.Responses) ledger.Totals { return chunksOf(r, r.FromZero > 0) }

// chunksOf is Chunks for all responses of a run, or for those of one runner. fromZero: the numbers of some responses of
// the run start at 0.
func chunksOf(r *shard.Responses, fromZero bool) ledger.Totals {
	c := r.Chunks
	if fromZero {
		c.Missed += uint64(r.FromOne)   // #nosec G115 -- a count
		c.Expected += uint64(r.FromOne) // #nosec G115 -- a count
	}
	return c
}

// OpenTailsText states that the loss of last chunks could not have been detected.
func OpenTailsText(r *shard.Responses) string {
	return "the loss of the last chunks of " + format.Count(r.OpenTails, "complete response") + " could not have been detected"
}

func basisOfResponses(r *shard.Responses) Basis {
	b := Basis{Kind: ByNumbers, Undetectable: uint64(r.Uncovered + r.OpenTails), Why: []string{}} // #nosec G115 -- counts
	if r.Uncovered > 0 {
		b.Why = append(b.Why, "losses inside "+format.Count(r.Uncovered, "complete response")+
			" could not have been detected: chunks have no numbers, and the service does not state what it sent")
	}
	if r.OpenTails > 0 {
		b.Why = append(b.Why, OpenTailsText(r)+": the terminal event has no number")
	}
	switch complete := r.States[ledger.ResponseComplete]; {
	case r.Uncovered == complete && r.Numbered+r.FromZero+r.FromOne == 0:
		b.Kind = ByNothing
	case r.Numbered+r.FromZero+r.FromOne == 0:
		b.Kind = ByStatement
	}
	return b
}

func (v *Verdict) addResponses(m *shard.Merged, r *shard.Responses, l ModelLedger) {
	v.Responses, v.Evidence = ResponsesOf(r, l), basisOfResponses(r)
	v.Messages.Totals = Chunks(r)
	for i := range m.Runners {
		if part := m.Runners[i].Responses; part != nil {
			v.Runners[i].Totals = chunksOf(part, r.FromZero > 0)
		}
	}
	checked := v.Evidence.Kind != ByNothing
	v.MessagesChecked = &checked
	for _, f := range r.Findings {
		v.Findings = append(v.Findings, Finding{Kind: string(f.State), ID: f.ID, Unix: float64(f.AtUS) / 1e6, Text: ResponseSentence(&f)})
	}
}

// ResponseSentence describes a response that did not complete, or whose chunks differ from the chunks that were sent.
func ResponseSentence(f *shard.ResponseFinding) string {
	text := fmt.Sprintf("request %s at %s: ", f.ID, format.TimeOfDay(time.UnixMicro(f.AtUS)))
	text += ResponseStates[f.State]
	after := fmt.Sprintf(" after %s", format.Count(f.Chunks, "chunk"))
	if f.TotalChunks > 0 {
		after = fmt.Sprintf(" after %d of %s", f.Counts.Received+f.Counts.Corrupted, format.Count(f.TotalChunks, "chunk"))
	}
	if f.State != ledger.ResponseComplete && f.State != ledger.ResponseRefused && f.State != ledger.ResponseEmpty {
		text += after
	}
	for _, c := range []struct {
		n     uint64
		fault string
	}{{f.Counts.Missed, "missed"}, {f.Counts.Duplicated, "duplicated"}, {f.Counts.Reordered, "reordered"}, {f.Counts.Corrupted, "corrupted"}} {
		if c.n > 0 {
			text += fmt.Sprintf(", %s %s", format.Count(c.n, "chunk"), c.fault)
		}
	}
	if f.FirstMissing != nil {
		text += fmt.Sprintf(" (first missed: number %d)", *f.FirstMissing)
	}
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	return text
}

// ResponseStates describes the states of responses, except ResponseAbandoned, of which reports have only a count.
var ResponseStates = map[ledger.ResponseState]string{
	ledger.ResponseComplete:   "complete",
	ledger.ResponseTruncated:  "truncated",
	ledger.ResponseError:      "failed with an error event",
	ledger.ResponseRefused:    "refused",
	ledger.ResponseEmpty:      "empty",
	ledger.ResponseIdle:       "silent for too long",
	ledger.ResponseLingering:  "open after the terminal event",
	ledger.ResponseAfterDone:  "continued after the terminal event",
	ledger.ResponseUnfinished: "unfinished at the end of the run",
}

// A ModelEntry is one request in the ledger of the numbered model. A gateway may repeat a request.
type ModelEntry struct {
	ID             string `json:"id"`
	Sent           int64  `json:"sent"`           // chunks
	DisconnectedUS int64  `json:"left,omitempty"` // when the model noticed that its client had disconnected, in microseconds since 1970; 0: it did not
}

// A ModelLedger has the requests of the numbered model by id; nil if it was not read.
type ModelLedger map[string][]ModelEntry

// ReadModelLedger adds the entries of an NDJSON file to a ledger, which may be nil. A missing file adds nothing.
func ReadModelLedger(to ModelLedger, path string) (ModelLedger, error) {
	l := to
	if l == nil {
		l = ModelLedger{}
	}
	exists, err := readLedger(path, "read the model's ledger", func(e ModelEntry) error {
		if e.Sent < 0 || e.Sent > maxSent || e.DisconnectedUS < 0 {
			return errors.New("counts or times are out of range")
		}
		l[e.ID] = append(l[e.ID], e)
		return nil
	})
	if exists || err != nil {
		return l, err
	}
	return to, nil
}

// A Cancellation shows whether the service cancelled requests at the numbered model after clients had disconnected.
type Cancellation struct {
	Checked   int64 `json:"checked"`   // abandoned responses whose requests are in the ledger of the model
	Cancelled int64 `json:"cancelled"` // the part of these that was cancelled at the model before the run had ended
	// Delay is the time from the disconnect of the client until the model noticed it, in milliseconds.
	Delay ResponseQuantiles `json:"after_ms"`
	// UnreceivedChunks counts the chunks that the model sent and no client received.
	UnreceivedChunks int64 `json:"unreceived_chunks"`
}

// cancellation joins the abandoned responses with the ledger of the model; nil if the ledger has none of them.
func cancellation(abandoned []shard.AbandonedResponse, l ModelLedger) *Cancellation {
	c, delays := Cancellation{}, shard.NewHistogram()
	for _, response := range abandoned {
		entries := l[response.ID]
		if len(entries) == 0 {
			continue
		}
		c.Checked++
		sent, disconnected := int64(0), int64(0) // if a gateway repeated the request: the sum, and the last cancellation
		for _, e := range entries {
			sent += e.Sent
			disconnected = max(disconnected, e.DisconnectedUS)
		}
		c.UnreceivedChunks += max(sent-response.Chunks, 0)
		if disconnected > 0 {
			c.Cancelled++
			delays.Record(time.Duration(max(disconnected-response.AtUS, 0)) * time.Microsecond)
		}
	}
	if c.Checked == 0 {
		return nil
	}
	c.Delay = responseQuantiles(delays)
	return &c
}
