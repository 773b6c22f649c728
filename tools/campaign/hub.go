package main

import (
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A hub is a service with topics and a fault. It records the published messages, and the frames sent to each client.
type hub struct {
	hubSpec
	fakeservice.Server
	fault        hubFault
	plan         plan
	marker       string // marker of the last published message of the run; "": none yet
	topics       []*hubTopic
	byID         map[string]*hubClient // clients of the run, by id
	otherClients map[string]*hubClient
	joins        map[string]chan struct{} // keyed by {client}; closed by the second request of a stream
	downUntil    time.Time                // time until which the hub refuses clients
	joinCount    int64
	random       *rand.Rand // guarded by Mu
}

// A hubTopic has the messages published to one topic.
type hubTopic struct {
	name       string
	n          int            // index among the run's topics
	messages   []*message     // messages of the run
	foreignIDs map[string]int // number of messages before each foreign block, by the id of the block
	streams    map[*hubStream]bool
}

func startHub(sc *scenario, l net.Listener) *hub {
	h := &hub{
		hubSpec: *sc.Hub, fault: sc.HubFault, plan: sc.Plan, byID: map[string]*hubClient{}, otherClients: map[string]*hubClient{}, joins: map[string]chan struct{}{},
		random: rand.New(rand.NewPCG(sc.Seed, 0x4b)),
	}
	for k := range h.Topics {
		h.topics = append(h.topics, &hubTopic{name: sc.Plan.topic(k), n: k, foreignIDs: map[string]int{}, streams: map[*hubStream]bool{}})
	}
	h.Serve(&http.Server{Handler: h}, l)
	h.Handlers.Go(h.writeForeign)
	return h
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/s" || strings.HasPrefix(path, "/s/"):
		h.subscribe(w, r)
	case path == "/p" || strings.HasPrefix(path, "/p/"):
		h.publish(w, r)
	case strings.HasPrefix(path, "/join/"):
		h.join(w, r)
	case path == "/end":
		h.requestEnd(w, r)
	default:
		http.NotFound(w, r)
	}
}

// topicOf returns the topic that a request names, or nil if the request names no topic of the run.
func (h *hub) topicOf(r *http.Request) *hubTopic {
	name := r.URL.Query().Get("topic")
	if h.TopicInPath {
		name = r.URL.Path[3:]
	}
	for _, t := range h.topics {
		if t.name == name {
			return t
		}
	}
	return nil
}

func (h *hub) publishCount() (n int) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for _, t := range h.topics {
		n += len(t.messages)
	}
	return n
}

// A hubClient is the record of one client of a hub: its streams, and the frames written to them.
type hubClient struct {
	fakeservice.Client
	n              int // index among the run's clients; -1: not a client of the run
	topic          *hubTopic
	firstRequestAt time.Time  // time of the first request
	stream         *hubStream // the open stream; nil: none
	endedByFault   bool       // a fault ended one of its streams
	joinRefused    bool       // the second request of one of its streams was refused
	frames         []frame
	refusals       int          // refused or delayed reconnects since its last stream
	dropped        map[int]int  // index of the stream on which a fault dropped a message, by the message's number
	broken         map[int]bool // indexes of streams that did not continue exactly where the previous one ended
}

// A frame is the record of one written block.
type frame struct {
	kind       string
	number     int       // number of the published message
	seq        int       // number that the client finds in the block; 0: the block is corrupted
	receivedAt time.Time // when the hub received the message
	at         time.Time // when the block was written
	span       int       // index of the stream among the client's streams
	uncertain  bool      // the client may not have read the block
}

const (
	frameMessage    = "message"
	frameForeign    = "foreign"
	frameOtherTopic = "other topic" // message of another topic of the run
	frameOther      = "other"       // block that no count includes
	frameHeartbeat  = "heartbeat"
	frameGap        = "gap"
)

// Effects of a fault on a message of a hub stream, in addition to the effects in fakeservice and hub_payload.go.
const (
	hubMuted      = "mute"  // the stream stops: no more messages or heartbeats
	hubOtherTopic = "other" // sent to the streams of the next topic instead
	hubLeaks      = "leak"  // also sent to the streams of the next topic
	hubGap        = "gap"   // the hub announces missing messages although the message arrives
)

// Effects of a fault on the request that publishes a message.
const (
	publishRefused          = "refuse"                // answered with hubFault.Status, and not delivered
	publishRefusedDelivered = "refuse after delivery" // answered with hubFault.Status, and delivered
	publishDropped          = "close"                 // the connection is closed without a response; not delivered
	publishUnanswered       = "close after delivery"  // the connection is closed without a response; delivered
	publishHangs            = "hang"                  // the connection stays open without a response; not delivered
	publishUndelivered      = "lose"                  // confirmed, and not delivered
	publishStopsDelivery    = "lose from then on"     // confirmed, and not delivered, like all later messages of all topics
	publishLosesOne         = "lose on one stream"    // delivered to all but one of the streams
)

// A hubFault is a fault of a hub. The zero value means no fault.
type hubFault struct {
	fakeservice.Fault
	Every  int // the fault affects every nth message, starting with From; 0: all messages
	Offset int // added to the number of a message

	Publish string // effect on publish requests; "": none
	Topics  []int  // affected topics; empty: all
	Status  int    // status code of refused publish requests

	Overlap   int    // number of messages that a client receives again when it resumes
	Seam      string // effect on the replay of missed messages: see hub_seam.go
	StreamsOf string // limits Seam to clients that vanished from the previous stream (half), or to the others (closed)
	Allowed   bool   // a gap that the service announces is not a fault

	Reconnect  string // how clients that reconnect are refused or delayed: a status, reset, slow; "": not at all
	Reconnects int    // number of affected reconnects per client; 0: all

	Answer       int           // status of the response to a connect; 0: a stream opens
	Join         int           // status of the response to the second request; 0: success
	NoHeartbeats bool          // the service sends no heartbeats
	MeanLifetime time.Duration // mean time after which the service ends a stream; 0: hubSpec.End decides
	Early        bool          // the first stream of a client ends before its lifetime
	Overdue      bool          // streams end long after their lifetime
	TokenRefused bool          // the hub refuses valid tokens at a reconnect
}

func (f *hubFault) matches(id string, m *message) bool {
	return f.Action != "" && f.Matches(id) && f.Covers(m.number) && (f.Every == 0 || (m.number-f.From)%f.Every == 0)
}

func (f *hubFault) isMisrouted(m *message) bool {
	return (f.Action == hubOtherTopic || f.Action == hubLeaks) && slices.Contains(f.Topics, m.topic.n) && f.Covers(m.number)
}

func (f *hubFault) publishAction(m *message) string {
	if len(f.Topics) > 0 && !slices.Contains(f.Topics, m.topic.n) || !f.Covers(m.number) {
		return ""
	}
	return f.Publish
}

// writeForeign writes blocks of other publishers to the streams of the run until the hub stops.
func (h *hub) writeForeign() {
	if len(h.Foreign) == 0 {
		return
	}
	for n := 0; ; n++ {
		select {
		case <-h.Stopped:
			return
		case <-time.After(time.Duration(60+h.plan.Connections*4) * time.Millisecond):
		}
		h.Mu.Lock()
		text, kind := h.foreignBlock(h.Foreign[n%len(h.Foreign)], n)
		topic := h.topics[n%len(h.topics)]
		if _, fields, ok := strings.Cut(text, "id: "); ok && !strings.HasPrefix(text, "data") {
			id, _, _ := strings.Cut(fields, "\n")
			topic.foreignIDs[id] = len(topic.messages)
		}
		for f := range topic.streams {
			if text != "" && f.client.n >= 0 {
				f.enqueueText(text, kind)
			}
		}
		h.Mu.Unlock()
	}
}

// foreignBlock returns one block of another publisher, and the kind of frame to record for it. Before the first message
// of the run, it returns "" for the variants that are messages with a marker.
func (h *hub) foreignBlock(variant string, n int) (text, kind string) {
	m := &message{run: "t-0ther1", number: n + 1, index: 100_000 + n, t: strconv.FormatInt(time.Now().UnixMicro(), 10)}
	if h.Form == formID { // foreign ids must differ from the ids of the run
		m.number += 100_000
	}
	switch variant {
	case "comment":
		kind = frameOther
		if k := heartbeats[h.Heartbeat]; k.description["comment"] == true {
			kind = frameHeartbeat
		}
		return ": nothing but a comment\n\n", kind
	case "retry":
		return "retry: " + strconv.Itoa(max(h.Retry, 50)) + "\n\n", frameOther
	case "event":
		return h.event("none-of-these", "", h.data(h.marker, "3", m.t, "00000000", m)), frameOther
	case "text":
		return h.event(h.eventOf(m), "", "hello, how are you?"), frameOther
	case "broken":
		return h.event(h.eventOf(m), "", `{"run":"t-0ther1","seq":4,`), frameOther
	case "large":
		return h.event(h.eventOf(m), "", `{"text":"`+strings.Repeat("0123456789", 6000)+`"}`), frameOther
	}
	prefix, _, ok := strings.Cut(h.marker, ".") // the part that is the same for all topics
	if !ok {
		return "", ""
	}
	switch variant {
	case "longer marker":
		m.run = prefix + "-trial-a0b1c2"
	case "shorter marker":
		m.run = prefix
	}
	if variant != "run" && h.HasChecksum {
		m.sum = sumOf(m.run, m.number, m.t)
	}
	text, _, _ = h.block(m, "", 0)
	return text, frameForeign
}
