package main

import (
	"math/rand/v2"
	"net"
	"net/http"
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
