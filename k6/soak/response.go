package soak

import (
	"cmp"
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/model/numbered"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A response is one request of a finiteLoad, and what came of it. The goroutine that reads its stream calls the callbacks; no JavaScript
// runs per chunk.
type response struct {
	load           *finiteLoad
	client         *finiteClient
	captured       bool   // the value that the client's next request has
	n              int64  // of the request in the run, from 0
	id             string // unique in the run
	request        sseclient.Request
	stream         *sseclient.Stream
	account        ledger.Response
	part           []byte    // the end of the text, which may be the beginning of a chunk number
	reason         string    // why it did not complete; ""
	abandonAfter   uint32    // chunks after which the client leaves; 0: it does not
	terminal       time.Time // when the terminal event or an error arrived
	lastArrival    time.Time // when the header or the last block that is not a heartbeat arrived
	closedByClient bool      // the client closed it
}

// begin opens the stream.
func (r *response) begin() {
	f := r.load
	r.stream = f.streams.Add(sseclient.Callbacks{
		Request:    func() sseclient.Request { return r.request },
		Connecting: func(at time.Time) { r.account.Started = max(f.m.recorder.instant(at), 1) },
		Opened:     r.opened, Block: r.block, Closed: r.closed,
		Ended: r.ended,
	})
	f.mu.Lock()
	f.open[r] = struct{}{}
	finished := f.finished
	f.mu.Unlock()
	if finished {
		r.stream.Stop(sseclient.ReasonClient)
	}
	r.stream.Start()
}

func (r *response) opened(at time.Time, answer *sseclient.Response) {
	r.lastArrival = at
	r.account.Headers = r.load.m.recorder.instant(answer.At)
	r.load.results.opened(answer.Header.Get("Server"))
	if name := r.load.service.ClientHeader(); name != "" {
		r.client.value = cmp.Or(answer.Header.Get(name), r.client.value) // a session names itself once
	}
	r.request = sseclient.Request{} // it may be large
}

// block counts a block of the response.
func (r *response) block(at time.Time, b *eventstream.Block) {
	f := r.load
	block := blockOf(&b.Event, b.HasData, b.HasComment)
	c := f.service.ReadChunk(&block)
	if r.leftOnPurpose() {
		return // it came with the chunk after which the client left
	}
	if (c.Heartbeat || !r.terminal.IsZero()) && r.isSilent(at) {
		r.closedByClient = true
		r.stream.Stop(sseclient.ReasonClient)
	}
	if c.Heartbeat {
		if c.Err != nil && r.reason == "" {
			r.reason = c.Err.Error()
		}
		return
	}
	if !r.captured {
		if value, ok := f.service.Client(&block); ok {
			r.client.value, r.captured = value, true
		}
	}
	r.lastArrival = at
	first := r.account.Chunks == 0
	r.account.Block(&ledger.Chunk{
		At: f.m.recorder.instant(at), Done: c.Done, Failed: c.Failed, Incomplete: c.Incomplete, Content: c.Content, Broken: c.Err != nil,
		Seq: uint64(c.Seq), HasSeq: c.HasSeq, // #nosec G115 -- it is not negative
	})
	if c.Content {
		r.number(c.Text)
	}
	if c.IsStated && f.service.Finite.States() {
		r.account.Text(c.Text)
	}
	if c.HasStatedText {
		r.account.StateText(c.StatedText)
	}
	if c.HasStatedChunks {
		r.account.StateChunks(uint64(c.StatedChunks)) // #nosec G115 -- it is not negative
	}
	if c.HasStatedTokens {
		r.account.StateTokens(uint64(c.StatedTokens)) // #nosec G115 -- it is not negative
	}
	switch {
	case c.Failed && r.reason == "":
		r.reason = "the service reported: " + r.excerpt(b.Data)
	case c.Err != nil && r.reason == "":
		r.reason = c.Err.Error() + ": " + r.excerpt(b.Data)
	}
	switch {
	case (c.Done || c.Failed) && r.terminal.IsZero():
		r.terminal = at
		if c.Done && !r.leftOnPurpose() {
			r.stream.KeepConnection()
		}
		r.stream.SetIdleTimeout(secondsOf(f.Linger))
	case first && c.Content:
		r.stream.SetIdleTimeout(secondsOf(f.IdleTimeout))
	}
	if r.leftOnPurpose() && !r.stream.Cut(f.cut(), 0) {
		r.stream.Stop(sseclient.ReasonClient)
	}
}

// isSilent reports whether the response has sent nothing but heartbeats for too long, or has not ended after its terminal event.
func (r *response) isSilent(at time.Time) bool {
	switch f := r.load; {
	case !r.terminal.IsZero():
		return at.Sub(r.terminal) >= secondsOf(f.Linger)
	case r.account.Chunks > 0:
		return at.Sub(r.lastArrival) >= secondsOf(f.IdleTimeout)
	default:
		return at.Sub(r.lastArrival) >= secondsOf(f.FirstTimeout)
	}
}

// leftOnPurpose reports whether the client left on purpose.
func (r *response) leftOnPurpose() bool {
	return r.abandonAfter > 0 && r.account.Chunks >= r.abandonAfter
}

// number reads the chunk numbers in a part of the text, one of which may be in two parts.
func (r *response) number(text []byte) {
	if len(r.part) > 0 {
		text = append(r.part, text...)
	}
	for {
		token, rest, found := numbered.Next(text)
		if !found {
			r.part = append(r.part[:0], rest...)
			return
		}
		valid := token.Valid(r.id)
		r.account.Numbered(uint64(token.K), uint64(token.N), valid) // #nosec G115 -- they are not negative
		if !valid && r.reason == "" {
			r.reason = fmt.Sprintf("chunk number %d of %d was changed, or belongs to another request", token.K, token.N)
		}
		text = rest
	}
}

func (r *response) excerpt(data []byte) string {
	if known := r.load.m.recorder.credentials.Load(); known != nil {
		return known.excerpt(data)
	}
	return excerpt(data)
}

// refuse ends a response whose request could not be made.
func (r *response) refuse(why error) {
	r.reason = why.Error()
	r.account.Close(r.load.m.recorder.instant(time.Now()), ledger.NeverOpened)
	r.ended()
}

// closed ends the account.
func (r *response) closed(at time.Time, c sseclient.Close) {
	f := r.load
	if r.reason == "" && c.Err != nil && !r.leftOnPurpose() {
		c = r.recordEnd(at, c)
		r.reason = c.Message()
	}
	r.account.Close(f.m.recorder.instant(at), r.closing(&c))
}

// ended counts the response. One that the client closed before its dial was never closed by a server.
func (r *response) ended() {
	f, now := r.load, time.Now()
	if r.account.State == "" {
		r.account.Close(f.m.recorder.instant(now), ledger.ClosedAtEnd)
	}
	f.results.ended(&r.account, r.id, r.reason[:min(len(r.reason), mostReason)], f.m.recorder.wall(now))
	f.ended(r)
}

// mostReason limits the reason of a finding, in bytes.
const mostReason = 300

// recordEnd hides secrets in what a service answered.
func (r *response) recordEnd(at time.Time, c sseclient.Close) sseclient.Close {
	if known := r.load.m.recorder.credentials.Load(); known != nil {
		return known.recordEnd(at, c, 1)
	}
	return c
}

func (r *response) closing(c *sseclient.Close) ledger.Closing {
	switch {
	case r.leftOnPurpose():
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
