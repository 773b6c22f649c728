package soak

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.k6.io/k6/v2/lib/netext/httpext"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// A broadcastOptions describes a request that makes the service send a message to all streams. soak-streams.d.ts
// documents it.
type broadcastOptions struct {
	URL     string            `js:"url"`
	Headers map[string]string `js:"headers"`
	Event   string            `js:"event"`
	KB      int               `js:"kb"`     // size of each message; 0: short
	Within  float64           `js:"within"` // time limit of a delivery in ms
}

// Metrics of the broadcasts of steps.
const (
	fanoutLatency      = "fanout_latency"       // from the timestamp of the service to each delivery
	fanoutLast         = "fanout_last"          // highest fanoutLatency of each broadcast that reached all subscribers in time
	fanoutSinceRequest = "fanout_since_request" // from the start of the request to each delivery, by the local clock
	fanoutPost         = "fanout_post"          // from the request to the response
	fanoutDue          = "fanout_due"           // expected deliveries
	fanoutArrived      = "fanout_arrived"       // deliveries in time, at most one per subscriber
	fanoutDuplicated   = "fanout_duplicated"    // repeated deliveries
	fanoutOverdue      = "fanout_overdue"       // deliveries after the time limit
	fanoutUntimed      = "fanout_untimed"       // deliveries in time, but without a timestamp between request and delivery
	fanoutUnexpected   = "fanout_unexpected"    // deliveries that match no broadcast to the subscriber
	fanoutShort        = "fanout_short"         // broadcasts whose response reports fewer streams than subscribers, or no number
)

type broadcaster struct {
	broadcastOptions
	h       *holding
	marker  string // the first word of each broadcast; random, so that broadcasts of other senders differ
	padding string

	mu          sync.Mutex
	subscribers []*subscriber // by the index of their streams
	history     []*broadcast  // broadcast n is at index n-1
}

type subscriber struct {
	index      int
	lastNumber int // highest number of a received broadcast
	received   int // broadcasts received in order, each counted once
	duplicates int // deliveries that arrived again, or after a later broadcast
}

// A broadcast is one message. Every stream that was added before the request is expected to receive it.
type broadcast struct {
	tags        metrics.TagsAndMeta
	publishedAt time.Time
	received    []bool // by index of the subscriber
	missing     int    // subscribers that have not received the broadcast in time
	maxLatency  time.Duration
	expired     bool          // the time limit has passed
	complete    chan struct{} // closed when no subscriber is missing
}

func newBroadcaster(h *holding, o broadcastOptions) *broadcaster {
	const head = 60 // maximum bytes of a message before its padding
	return &broadcaster{
		broadcastOptions: o, h: h, marker: strconv.FormatUint(rand.Uint64(), 36), // #nosec G404 -- no secret
		padding: strings.Repeat("x", max(o.KB<<10-head, 0)),
	}
}

// subscribe returns the listener of the next stream.
func (b *broadcaster) subscribe() func(time.Time, *service.Block) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &subscriber{index: len(b.subscribers)}
	b.subscribers = append(b.subscribers, s)
	return func(at time.Time, block *service.Block) {
		if string(block.Event) == b.Event {
			b.arrive(s, at, block)
		}
	}
}

// arrive counts a delivery, or an event that matches no broadcast.
func (b *broadcaster) arrive(s *subscriber, at time.Time, block *service.Block) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, message := b.find(block.Data)
	if message == nil || s.index >= len(message.received) {
		b.sample(fanoutUnexpected, b.h.state.Tags.GetCurrentValues(), at, 1)
		return
	}
	isDuplicate := message.received[s.index]
	if isDuplicate || n < s.lastNumber {
		s.duplicates++
	} else {
		s.lastNumber = n
		s.received++
	}
	switch message.received[s.index] = true; {
	case isDuplicate:
		b.sample(fanoutDuplicated, message.tags, at, 1)
	case message.expired:
		b.sample(fanoutOverdue, message.tags, at, 1)
	default:
		b.deliver(message, at, block.Comment)
	}
}

// deliver counts a delivery within the time limit. comment may contain the send time of the service; see sentAt.
func (b *broadcaster) deliver(message *broadcast, at time.Time, comment []byte) {
	b.sample(fanoutSinceRequest, message.tags, at, metrics.D(max(at.Sub(message.publishedAt), 0)))
	if micros, ok := sentAt(comment); ok && message.publishedAt.UnixMicro() <= micros && micros <= at.UnixMicro() {
		latency := time.Duration(at.UnixMicro()-micros) * time.Microsecond
		message.maxLatency = max(message.maxLatency, latency)
		b.sample(fanoutLatency, message.tags, at, metrics.D(latency))
	} else {
		b.sample(fanoutUntimed, message.tags, at, 1)
	}
	if message.missing--; message.missing == 0 {
		close(message.complete)
	}
}

// sample adds a sample of a broadcast that a step sent. It has no effect in a call of hold without steps.
func (b *broadcaster) sample(name string, tags metrics.TagsAndMeta, at time.Time, value float64) {
	if b.h.Steps != nil {
		b.h.sample(name, tags, at, value)
	}
}

// find returns the broadcast with the given data, and its number; nil for other data.
func (b *broadcaster) find(data []byte) (n int, message *broadcast) {
	words := bytes.SplitN(data, []byte(" "), 3)
	if len(words) != 3 || string(words[0]) != b.marker || len(words[2]) != len(b.padding) {
		return 0, nil
	}
	n, err := strconv.Atoi(string(words[1]))
	if err != nil || n < 1 || n > len(b.history) {
		return 0, nil
	}
	return n, b.history[n-1]
}

// sentAt returns the send time, in µs, of a comment such as sent=1700000000000000.
func sentAt(comment []byte) (micros int64, ok bool) {
	_, digits, ok := bytes.Cut(comment, []byte("sent="))
	if !ok {
		return 0, false
	}
	end := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		digits = digits[:end]
	}
	micros, err := strconv.ParseInt(string(digits), 10, 64)
	return micros, err == nil
}

// send sends a broadcast, and returns it with the response. The response is nil if k6 returned an error, and has the
// status 0 if the service did not respond.
func (b *broadcaster) send(tags metrics.TagsAndMeta, response httpext.ResponseType) (*broadcast, *httpext.Response) {
	b.mu.Lock()
	n := len(b.subscribers)
	message := &broadcast{tags: tags, publishedAt: time.Now(), received: make([]bool, n), missing: n, complete: make(chan struct{})}
	b.history = append(b.history, message)
	r := sseclient.Request{URL: b.URL, Method: http.MethodPost, Header: http.Header{}, Body: fmt.Sprintf("%s %d %s", b.marker, len(b.history), b.padding)}
	b.mu.Unlock()
	for name, value := range b.Headers {
		r.Header.Set(name, value)
	}
	resp, err := b.h.send(b.h.ctx, &r, b.h.state.Tags.GetCurrentValues(), max(milli(b.Within), endRequestTimeout), response)
	if err != nil {
		b.h.warn(err)
		return message, nil
	}
	return message, resp
}

// measure sends a broadcast and adds its samples. It waits until the broadcast has reached every stream, or until the
// time limit of its deliveries.
func (b *broadcaster) measure(tags metrics.TagsAndMeta) {
	h, timeout := b.h, time.After(milli(b.Within))
	h.sample(fanoutDue, tags, time.Now(), float64(len(b.subscribers)))
	message, resp := b.send(tags, httpext.ResponseTypeText)
	if resp != nil && resp.Status != 0 {
		h.sample(fanoutPost, tags, time.Now(), resp.Timings.Duration)
	}
	if deliveredStreams(resp) < len(message.received) { // a larger number includes streams of other clients
		shortTags := tags
		if resp == nil || resp.Status != http.StatusOK {
			shortTags.SetTag(shard.TagCode, failureCode(resp))
		}
		h.sample(fanoutShort, shortTags, time.Now(), 1)
	}
	select {
	case <-message.complete:
	case <-timeout:
	case <-h.ctx.Done():
	}
	b.mu.Lock()
	message.expired = true
	missing, maxLatency := message.missing, message.maxLatency
	b.mu.Unlock()
	h.sample(fanoutArrived, tags, time.Now(), float64(len(message.received)-missing))
	if missing == 0 {
		h.sample(fanoutLast, tags, time.Now(), metrics.D(maxLatency))
	}
}

// deliveredStreams returns the number of streams that the broadcast reached, as the service reports it; -1 if unknown.
func deliveredStreams(resp *httpext.Response) int {
	var result struct{ Delivered *int }
	if resp == nil || resp.Status != http.StatusOK {
		return -1
	}
	if text, ok := resp.Body.(string); !ok || json.Unmarshal([]byte(text), &result) != nil || result.Delivered == nil {
		return -1
	}
	return *result.Delivered
}
