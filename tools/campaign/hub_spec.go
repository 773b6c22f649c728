package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A hubSpec describes a hub: its requests, its streams, and its description.
type hubSpec struct {
	Topics int
	Rate   float64 // messages per second, all topics together

	Method           string
	MessageIn        string        // place of a message in the request: json, form, headers, query
	TopicInPath      bool          // the topic is in the path of URLs, otherwise in their query
	Status           int           // status of the response to a publish request
	ResponseDelay    time.Duration // maximum delay of that response
	RespondsFirst    bool          // the hub responds before it delivers the message
	ClosesConnection bool          // the hub closes the publisher's connection after each response
	IDInHeader       bool          // the client id is in a header, otherwise in the query

	Message any `json:",omitempty"` // message field of the description if the run does not publish; nil: the run publishes

	Form          string        // format of the data
	Time          string        // format of the time
	HasMarker     bool          // messages have a marker
	HasTime       bool          // messages have a time
	HasChecksum   bool          // messages have a checksum
	EscapesMarker bool          // a character of the marker is escaped
	HasLineBreaks bool          // the JSON contains line breaks
	Pad           int           // bytes of additional text
	Events        []string      // event names of messages; empty: any names, and the description states none
	IDs           string        // form of the id field
	Delay         time.Duration // maximum delay of a message
	Order         string        // order field of the description, with which the hub complies: any, or ""
	Delivery      string        // delivery field of the description, with which the hub complies: at-least-once, or ""

	Heartbeat         string        // a key of heartbeats; "": none
	HeartbeatInterval time.Duration // maximum time between two heartbeats
	StatedInterval    float64       // interval in seconds that the description states; 0: none
	Foreign           []string      // kinds of foreign blocks

	HeaderDelay   time.Duration // maximum delay of the headers
	SecondRequest bool          // a stream needs a second request
	End           string        // who ends a stream: client, request (the hub, at the client's request), server
	EndDelay      time.Duration // time that the hub needs to end a stream on request
	Lifetime      float64       // minimum lifetime of a stream in seconds if the server ends it
	Token         string        // a key of tokens; "": streams need no token
	TTL           float64       // seconds for which a token is valid; 0: the hub checks no tokens
	Resume        string        // place of the id in a request that resumes: header, query, data (in the query, from the data), none
	Gap           string        // place of the announcement of missing messages: event, header; "": no announcement
	fakeservice.Format
	Skew time.Duration // offset of the clock that writes the times in messages
}

const (
	formFlat   = "flat"   // JSON
	formNested = "nested" // JSON with objects and lists
	formText   = "text"   // JSON with numbers as strings
	formTags   = "tags"   // JSON with a list of strings
	formID     = "id"     // JSON without the number, which is in the field id
	formWords  = "words"  // plain text
)

const (
	idsNone     = "none"
	idsConstant = "constant"
	idsUUID     = "uuid"
	idsTime     = "time:n"
	idsNumber   = "number"   // number of the message
	idsPrefixed = "prefixed" // text followed by that number
)

// heartbeats has the kinds of heartbeats: their description, and the text that the hub writes.
var heartbeats = map[string]struct {
	description map[string]any
	text        string // lines end with LF
}{
	"comment":      {map[string]any{"comment": true}, ": still here\n\n"},
	"line":         {map[string]any{"comment": true}, ":\n"}, // the line is part of the next block
	"one comment":  {map[string]any{"comment": "beat"}, ": beat\n\n"},
	"event":        {map[string]any{"event": "ping"}, "event: ping\n\n"},
	"with data":    {map[string]any{"event": "ping"}, "event: ping\ndata: 17\n\n"},
	"data":         {map[string]any{"data": "{}"}, "data: {}\n\n"},
	"event, data":  {map[string]any{"event": "keep-alive", "data": ""}, "event: keep-alive\ndata:\n\n"},
	"after a line": {map[string]any{"event": "ping"}, ":\nid\nevent: ping\n\n"},
}

func drawHub(r *rand.Rand) *hubSpec {
	h := &hubSpec{
		Topics: 1 + r.IntN(4), Method: oneOf(r, "POST", "PUT", "PATCH"), MessageIn: oneOf(r, "json", "form", "headers", "query"), TopicInPath: r.IntN(2) == 0,
		Status: oneOf(r, 200, 201, 202, 204), RespondsFirst: r.IntN(3) == 0, ClosesConnection: r.IntN(5) == 0, IDInHeader: r.IntN(3) == 0,
		Form: oneOf(r, formFlat, formNested, formText, formTags, formID, formWords), Time: oneOf(r, "whole", "text", "exponent", "date", "seconds"),
		HasMarker: true, HasTime: r.IntN(5) > 0, EscapesMarker: r.IntN(5) == 0, HasLineBreaks: r.IntN(4) == 0,
		Pad:         oneOf(r, 0, 0, 30, 500, 5000, 40_000, 62_000),
		Events:      oneOf(r, nil, []string{"message"}, []string{"news"}, []string{"created", "changed"}),
		IDs:         oneOf(r, idsNone, idsConstant, idsUUID, idsTime),
		HeaderDelay: oneOf(r, 0, 0, 100*time.Millisecond, time.Second), SecondRequest: r.IntN(5) == 0, End: oneOf(r, "client", "client", "request", "server"),
		Format: fakeservice.Format{Lines: oneOf(r, "\n", "\n", "\r\n", "\r"), BOM: r.IntN(6) == 0, Framing: oneOf(r, "chunks", "chunks", "split", "close")},
	}
	interval := oneOf(r, .25, .4, .5, .8)
	h.Rate = float64(h.Topics) / interval
	h.ResponseDelay = time.Duration(r.Float64() * oneOf(r, 0, .1, .6) * interval * float64(time.Second))
	h.Delay = oneOf(r, 0, 0, 50*time.Millisecond, 400*time.Millisecond)
	h.HasChecksum = h.HasTime && r.IntN(2) == 0
	if !h.HasChecksum && h.Time == "whole" && r.IntN(2) == 0 {
		h.Time = "millis"
	}
	if h.Form == formID {
		h.IDs = oneOf(r, idsNumber, idsPrefixed)
	}
	if h.Form == formWords {
		h.EscapesMarker, h.HasLineBreaks = false, false
		h.Time = oneOf(r, "whole", "seconds")
	}
	if !h.HasChecksum && r.IntN(6) == 0 {
		h.HasMarker = false
	}
	h.drawHeartbeat(r)
	h.drawForeign(r)
	h.drawEnd(r)
	switch r.IntN(6) {
	case 0:
		h.allowAnyOrder()
		h.Delay = 400 * time.Millisecond
	case 1:
		h.Delivery = "at-least-once"
	}
	return h
}

// allowAnyOrder makes a hub deliver in any order. Its streams do not resume, because an id does not determine which
// messages were received.
func (h *hubSpec) allowAnyOrder() {
	h.Order, h.Resume = "any", "none"
	if h.End == "server" { // messages near the start and end of a stream are not checked
		h.Lifetime = 8
	}
}

func (h *hubSpec) drawHeartbeat(r *rand.Rand) {
	if r.IntN(4) == 0 {
		return
	}
	h.Heartbeat = oneOf(r, slices.Sorted(maps.Keys(heartbeats))...)
	h.HeartbeatInterval = time.Duration(oneOf(r, 200, 400, 900)) * time.Millisecond
	if r.IntN(3) > 0 {
		h.StatedInterval = oneOf(r, 1., 2, 3)
	}
	if h.Heartbeat == "data" && !h.HasMarker && h.Form == formWords {
		h.Heartbeat = "comment"
	}
}

// drawForeign draws the kinds of blocks that other publishers send. Without a marker, no kind is a message, because
// clients could not recognize the message as foreign.
func (h *hubSpec) drawForeign(r *rand.Rand) {
	kinds := []string{"comment", "retry"}
	if h.Events != nil {
		kinds = append(kinds, "event")
	}
	if h.HasMarker {
		kinds = append(kinds, "run", "longer marker", "shorter marker", "text", "broken", "large")
		if h.HasChecksum {
			kinds = append(kinds, "run with a sum")
		}
	}
	for _, n := range r.Perm(len(kinds))[:min(r.IntN(4), len(kinds))] {
		h.Foreign = append(h.Foreign, kinds[n])
	}
}

func (h *hubSpec) drawEnd(r *rand.Rand) {
	switch {
	case h.Heartbeat == "after a line": // such a heartbeat resets the id
		h.Resume = "none"
	case h.IDs != idsNone && h.IDs != idsConstant:
		h.Resume = oneOf(r, "header", "query", "none")
	default:
		h.Resume = "none"
	}
	if (h.Form == formTags || h.Form == formNested) && r.IntN(3) == 0 {
		h.Resume = "data"
	}
	h.Retry = oneOf(r, 0, 50, 300)
	switch h.End {
	case "server":
		h.Lifetime, h.Retry = 2.5+2*r.Float64(), oneOf(r, 50, 300)
		if h.Resume == "none" { // with a shorter lifetime, most messages would be near the start or end of a stream
			h.Lifetime = max(h.Lifetime, 6, 8*h.interval().Seconds())
		}
	case "request":
		h.EndDelay = oneOf(r, 0, 300*time.Millisecond)
	}
}

// interval returns the time between messages of a topic.
func (h *hubSpec) interval() time.Duration {
	return time.Duration(float64(h.Topics) / h.Rate * float64(time.Second))
}

func drawHubPlan(r *rand.Rand, h *hubSpec) plan {
	p := plan{
		Connections: h.Topics + 3 + r.IntN(20), Seconds: lead + 7 + r.IntN(3), Interval: h.interval().Seconds(), Runners: 1 + r.IntN(5)/4,
		LateMS: 1000, MaxLate: -1, Prefix: fmt.Sprintf("h%d-", r.IntN(1000)),
	}
	if h.Pad > 10_000 {
		p.Connections = min(p.Connections, h.Topics+6)
	}
	p.Connections = max(p.Connections, 5)
	if r.IntN(2) == 0 {
		p.PerVU = oneOf(r, 1, 2) // two runners need at least two virtual users
	}
	p.Reconnect = h.End == "server"
	return p
}

// messagesPerTopic returns the number of messages that a run publishes to a topic.
func (p *plan) messagesPerTopic(h *hubSpec, topic int) int {
	hold := p.hold().Seconds()
	all := int(max(hold-4, hold/2)*h.Rate - 1e-6)
	if float64(all) < max(hold-4, hold/2)*h.Rate-1e-6 {
		all++
	}
	return (all - topic + h.Topics - 1) / h.Topics
}

func (p *plan) topic(k int) string { return fmt.Sprintf("%stopic-%d", p.Prefix, k) }
