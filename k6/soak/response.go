package soak

import (
	"cmp"
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/model/numbered"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
	"github.com/sse-soak/sse-soak/k6/sse"
)

// A response is one request of a finiteLoad with its response. The SSE client calls the callbacks in Go, without
// JavaScript.
type response struct {
	sse.Meter
	load           *finiteLoad
	client         *finiteClient
	hasValue       bool   // a block has set client.value
	n              int64  // number of the request in the run, from 0
	id             string // unique in the run
	request        sseclient.Request
	stream         *sseclient.Stream
	credentials    *credentials
	account        ledger.Response
	textEnd        []byte    // end of the text so far, if it may be the start of a chunk number
	reason         string    // why the response is not complete or has a corrupted chunk; "" for neither
	abandonAfter   uint32    // number of chunks after which the client abandons the response; 0: never
	terminalAt     time.Time // arrival of the terminal event or of an error
	lastArrival    time.Time // of the headers, or of the last block that is not a heartbeat
	closedByClient bool      // the client closed the stream after a silence
}

func responseCallbacks() sseclient.Callbacks {
	responseOf := func(s *sseclient.Stream) *response { return s.Value().(*response) }
	return sseclient.Callbacks{
		Request:    func(s *sseclient.Stream) sseclient.Request { return responseOf(s).request },
		Connecting: func(s *sseclient.Stream, at time.Time) { responseOf(s).connecting(at) },
		Opened:     forward(responseOf, (*response).opened), Block: forward(responseOf, (*response).block), Closed: forward(responseOf, (*response).closed),
		Ended: func(s *sseclient.Stream) { responseOf(s).ended() },
	}
}

// begin opens the stream, and adds the response to the open responses of its load.
func (r *response) begin() {
	f := r.load
	r.stream = f.streams.Add(r)
	f.mu.Lock()
	f.open[r] = struct{}{}
	finished := f.finished
	f.mu.Unlock()
	if finished {
		r.stream.Stop(sseclient.ReasonClient)
	}
	r.stream.Start()
}

func (r *response) connecting(at time.Time) {
	r.account.Started = max(r.load.m.recorder.instant(at), 1)
}

// opened records the headers, and the value of {client} that they may contain.
func (r *response) opened(at time.Time, resp *sseclient.Response) {
	r.lastArrival = at
	r.account.Headers = r.load.m.recorder.instant(resp.At)
	r.load.results.addOpened(resp.Header.Get("Server"))
	if name := r.load.service.ClientHeader(); name != "" {
		r.client.value = cmp.Or(resp.Header.Get(name), r.client.value) // only a session's first response has the header
	}
	r.request = sseclient.Request{} // releases the memory of the body
}

// block counts a block of the response. It closes the stream after a silence, or to abandon the response.
func (r *response) block(at time.Time, b *eventstream.Block) {
	f := r.load
	block := blockOf(&b.Event, b.HasData, b.HasComment)
	c := f.service.ReadChunk(&block)
	if r.isAbandoned() {
		return // the block arrived together with the last chunk before the client abandoned the response
	}
	if (c.Heartbeat || !r.terminalAt.IsZero()) && r.isSilent(at) {
		r.closedByClient = true
		r.stream.Stop(sseclient.ReasonClient)
	}
	if c.Heartbeat {
		if c.Err != nil && r.reason == "" {
			r.reason = c.Err.Error()
		}
		return
	}
	if !r.hasValue {
		if value, ok := f.service.Client(&block); ok {
			r.client.value, r.hasValue = value, true
		}
	}
	r.lastArrival = at
	first := r.account.Chunks == 0
	r.account.Block(&ledger.Chunk{
		At: f.m.recorder.instant(at), Done: c.Done, Failed: c.Failed, Incomplete: c.Incomplete, Content: c.Content, Corrupted: c.Err != nil,
		Seq: uint64(c.Seq), HasSeq: c.HasSeq, // #nosec G115 -- not negative
	})
	r.addText(&c)
	switch {
	case c.Failed && r.reason == "":
		r.reason = "the service reported: " + r.credentials.excerpt(b.Data)
	case c.Err != nil && r.reason == "":
		r.reason = c.Err.Error() + ": " + r.credentials.excerpt(b.Data)
	}
	switch {
	case (c.Done || c.Failed) && r.terminalAt.IsZero():
		r.terminalAt = at
		if c.Done && !r.isAbandoned() {
			r.stream.KeepConnection()
		}
		r.stream.SetIdleTimeout(secondsOf(f.Linger))
	case first && c.Content:
		r.stream.SetIdleTimeout(secondsOf(f.IdleTimeout))
	}
	if r.isAbandoned() && !r.stream.Cut(f.cut(), 0) {
		r.stream.Stop(sseclient.ReasonClient)
	}
}

// addText reads the chunk numbers in the text of a block, and adds the text, chunks and tokens that the block states to
// the account. It adds the text itself only if the service states a text or a number of chunks.
func (r *response) addText(c *service.Chunk) {
	if c.Content {
		r.readNumbers(c.Text)
	}
	if c.IsStated && r.load.service.Finite.StatesTextOrChunks() {
		r.account.Text(c.Text)
	}
	if c.HasStatedText {
		r.account.StateText(c.StatedText)
	}
	if c.HasStatedChunks {
		r.account.StateChunks(uint64(c.StatedChunks)) // #nosec G115 -- not negative
	}
	if c.HasStatedTokens {
		r.account.StateTokens(uint64(c.StatedTokens)) // #nosec G115 -- not negative
	}
}

// isSilent reports whether only heartbeats have arrived during the timeout, or the response has not ended within Linger
// after its terminal event.
func (r *response) isSilent(at time.Time) bool {
	since := r.lastArrival
	if !r.terminalAt.IsZero() {
		since = r.terminalAt
	}
	limit, _ := r.silenceLimit()
	return at.Sub(since) >= secondsOf(limit)
}

// silenceLimit returns the limit of the current silence in seconds, and its setting in the suite finite.
func (r *response) silenceLimit() (limit float64, setting string) {
	switch f := r.load; {
	case !r.terminalAt.IsZero():
		return f.Linger, "LINGER"
	case r.account.Chunks > 0:
		return f.IdleTimeout, "IDLE_TIMEOUT"
	default:
		return f.FirstTimeout, "FIRST_TIMEOUT"
	}
}

// isAbandoned reports whether enough chunks have arrived for the client to abandon the response on purpose.
func (r *response) isAbandoned() bool {
	return r.abandonAfter > 0 && r.account.Chunks >= r.abandonAfter
}

// readNumbers reads the chunk numbers in a part of the text. A number may be split between two parts.
func (r *response) readNumbers(text []byte) {
	if len(r.textEnd) > 0 {
		text = append(r.textEnd, text...)
	}
	for {
		token, rest, found := numbered.Next(text)
		if !found {
			r.textEnd = append(r.textEnd[:0], rest...)
			return
		}
		valid := token.Valid(r.id)
		r.account.AddNumber(uint64(token.K), uint64(token.N), valid) // #nosec G115 -- not negative
		if !valid && r.reason == "" {
			r.reason = fmt.Sprintf("chunk number %d of %d is corrupted, or belongs to another request", token.K, token.N)
		}
		text = rest
	}
}

func (r *response) refuse(err error) {
	r.reason = r.credentials.hide(err.Error())
	r.account.Close(r.load.m.recorder.instant(time.Now()), ledger.NeverOpened)
	r.ended()
}

func (r *response) closed(at time.Time, c sseclient.Close) {
	f := r.load
	if r.reason == "" && c.Err != nil && !r.isAbandoned() {
		end := r.credentials.describeEnd(at, c, 0)
		r.reason = end.Message()
		if c.Reason == sseclient.ReasonIdle || c.Reason == sseclient.ReasonConnectTimeout {
			_, setting := r.silenceLimit()
			r.reason += " (" + setting + ")"
		}
	}
	closing := r.closing(&c)
	if closing == ledger.NeverOpened && http1.IsExhausted(c.Err) {
		f.results.addRefusedLocally()
	}
	r.account.Close(f.m.recorder.instant(at), closing)
}

// ended counts the response and removes it from the open responses of its load.
func (r *response) ended() {
	f, now := r.load, time.Now()
	if r.account.State == "" { // the client stopped the stream before its dial
		r.account.Close(f.m.recorder.instant(now), ledger.ClosedAtEnd)
	}
	f.results.addEnd(&r.account, r.id, format.Shorten(r.reason, maxReason), f.m.recorder.wall(now))
	f.finishResponse(r)
}

// maxReason limits the reason of a finding, in bytes.
const maxReason = 300

// closing returns how the response ended, given the end of its stream.
func (r *response) closing(c *sseclient.Close) ledger.Closing {
	switch {
	case r.isAbandoned():
		return ledger.ClosedOnPurpose
	case r.closedByClient:
		return ledger.ClosedSilent
	case c.Reason == sseclient.ReasonClient, c.Reason == sseclient.ReasonInterrupted, r.load.isOver():
		return ledger.ClosedAtEnd
	case !c.Opened:
		return ledger.NeverOpened
	case c.Reason == sseclient.ReasonIdle:
		return ledger.ClosedSilent
	case c.Reason == sseclient.ReasonServer:
		return ledger.ClosedInOrder
	}
	return ledger.ClosedBroken
}
