package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// A feedSpec describes a service that sends the same prices, without numbers, to all clients of a topic. The run does
// not publish; it compares the clients with each other.
type feedSpec struct {
	Topics          int
	MessageInterval time.Duration // mean time between two messages of a topic
	Burst           int           // number of messages that are sent together
	SharedSource    string        // message.same field of the description
	Repeats         bool          // a message often has the same content as the previous one
	Personal        bool          // messages contain the number of the client that receives them
	History         int           // number of earlier messages at the start of a stream
	HistoryInterval time.Duration // time between two messages of the history
	Lag             time.Duration // delay of the messages to one client
	Comments        bool
	Cut             string        // disconnect of one client: cutResumed or cutLost; "": none
	Fault           string        // "": none
	Client          int           // number of the client with the fault
	FaultDelay      time.Duration // time from the connect of the last client to the fault
	CutDelay        time.Duration // time from the connect of the last client to the disconnect
}

// Effects of a disconnect on the messages that the client misses.
const (
	cutResumed = "resumed" // the service sends them when the client reconnects
	cutLost    = "lost"    // the service does not send them again
)

const (
	feedLost          = "lost"
	feedSeveral       = "several lost"
	feedDuplicated    = "doubled"
	feedSwapped       = "swapped"
	feedChanged       = "changed"
	feedRunner        = "lost on one runner"
	feedHalfOfClients = "lost on half of the clients"
	feedSilent        = "silent"
	feedResume        = "lost while disconnected"
)

// subscriberKinds are the faults of a feed. They are drawn only for -kind subscribers or one of their names.
var subscriberKinds = []kind{
	{"subscribers", feedLost, feedFault(feedLost)}, {"subscribers", feedSeveral, feedFault(feedSeveral)},
	{"subscribers", feedDuplicated, feedFault(feedDuplicated)}, {"subscribers", feedSwapped, feedFault(feedSwapped)},
	{"subscribers", feedChanged, feedFault(feedChanged)}, {"subscribers", feedRunner, feedFault(feedRunner)},
	{"subscribers", feedHalfOfClients, feedFault(feedHalfOfClients)}, {"subscribers", feedSilent, feedFault(feedSilent)},
	{"subscribers", feedResume, feedFault(feedResume)},
}

func drawSubscribers(seed uint64, only string) *scenario {
	r := rand.New(rand.NewPCG(seed, 35))
	sc := &scenario{Seed: seed, Family: "subscribers"}
	k := kind{"subscribers", "clean", feedFault("")}
	if only != "subscribers" || r.IntN(2) == 0 {
		k = oneOf(r, withName(only, subscriberKinds)...)
	}
	sc.Group, sc.Kind = k.group, k.name
	k.setup(r, sc)
	return sc
}

func feedFault(fault string) setup {
	return func(r *rand.Rand, sc *scenario) {
		p := &plan{Seconds: 15 + r.IntN(4), Interval: 15, Runners: 1 + r.IntN(3), PerVU: 1, LateMS: 1000, MaxLate: -1, Prefix: fmt.Sprintf("c%d-", r.IntN(1000))}
		f := &feedSpec{
			Topics: oneOf(r, 1, 1, 2), MessageInterval: oneOf(r, 20*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond),
			Burst: oneOf(r, 1, 1, 1, 5), Repeats: r.IntN(2) == 0, Personal: r.IntN(3) == 0, Comments: r.IntN(4) == 0, Fault: fault,
			History: oneOf(r, 0, 0, 3, 30), Cut: oneOf(r, "", "", cutResumed, cutLost),
			SharedSource: oneOf(r, "json:$.price", "json:$.price", "data", `data:"price":(\d+)`, "id"),
		}
		switch fault {
		case feedRunner:
			// Each runner must have clients of the topic, and all clients must stay connected.
			p.Runners, f.Topics, f.Cut = max(p.Runners, 2), 1, ""
		case feedResume:
			f.Cut = cutResumed
		case feedChanged:
			f.SharedSource = "json:$.price"
		}
		p.Connections = f.Topics * p.Runners * (max(2, 6/p.Runners) + r.IntN(4))
		if f.Cut == cutLost {
			p.Seconds += 5 // so that enough messages of the disconnected client can be checked
		}
		if f.Personal && f.SharedSource == "data" {
			f.SharedSource = "json:$.price"
		}
		if r.IntN(4) == 0 && fault != feedRunner {
			f.Lag = time.Duration(500+r.IntN(2500)) * time.Millisecond
		}
		if f.History > 0 && r.IntN(3) == 0 {
			f.HistoryInterval = time.Duration(r.IntN(60)) * time.Millisecond
		}
		if p.Reconnect = f.Cut != "" || r.IntN(2) == 0; f.Cut == cutResumed {
			f.History = 0
		}
		const edge = 3 * time.Second
		f.CutDelay = edge + time.Duration(r.Int64N(int64(p.hold()-3*edge)))
		f.FaultDelay = edge + time.Duration(r.Int64N(int64(p.hold()-2*edge)))
		// The number is neither 0, the client that Cut disconnects, nor Topics, the client that Lag delays.
		f.Client = f.Topics * (2 + r.IntN(p.Connections/f.Topics-2))
		if fault == feedResume {
			f.Client, f.FaultDelay = 0, f.CutDelay
		}
		sc.Plan, sc.Feed = *p, f
	}
}

func (f *feedSpec) affects(p *plan, client int) bool {
	if client < 0 || f.Fault == "" || client%f.Topics != 0 {
		return false
	}
	switch f.Fault {
	case feedRunner:
		return client%p.Runners == f.Client%p.Runners
	case feedHalfOfClients:
		return client >= p.Connections/2
	}
	return client == f.Client
}

func (sc *scenario) expectFeed() *verdictExpectation {
	e, f := expectPass(), sc.Feed
	if f.Cut != "" {
		e.Counts["reconnected"] = exactCount(1)
	}
	if f.Fault == "" {
		return e
	}
	e.Outcomes = fails
	clients := 0
	for n := range sc.Plan.Connections {
		if f.affects(&sc.Plan, n) {
			e.Clients[sc.Plan.id(n)] = true
			clients++
		}
	}
	switch f.Fault {
	case feedSilent:
		e.Counts["missed"] = span{1, unbounded}
	case feedSeveral:
		e.Counts["missed"] = exactCount(feedBurst)
	case feedDuplicated:
		e.Counts["duplicated"] = exactCount(1)
	case feedSwapped:
		e.Counts["reordered"] = exactCount(1)
	case feedChanged:
		e.Counts["corrupted"] = exactCount(1)
	default:
		e.Counts["missed"] = exactCount(clients)
	}
	return e
}

// feedBurst is the number of messages that feedSeveral loses.
const feedBurst = 3

func (r *run) startFeed(l net.Listener) error {
	f := &feedService{feedSpec: *r.Feed, plan: &r.Plan, random: rand.New(rand.NewPCG(r.Seed, 0xfeed))}
	for range f.Topics {
		f.topics = append(f.topics, &priceTopic{streams: map[*priceStream]bool{}, noRepeatUntil: -1, faultIndex: -1})
	}
	r.feed = f
	f.Serve(&http.Server{Handler: f, ReadHeaderTimeout: time.Minute}, l)
	f.Handlers.Go(f.run)
	r.registerServer(&f.Server)
	resume := "none"
	if r.Feed.Cut == cutResumed {
		resume = "header"
	}
	text := fmt.Appendf(nil, `export default {
  name: 'feed', connect: { url: '{base}/feed?id={id}&topic={topic}' }, resume: { by: %q }, message: { event: 'price', same: %q },
};
`, resume, r.Feed.SharedSource)
	path := filepath.Join(r.dir, "service.js")
	r.Args = []string{"--service", path, "--control", "0"}
	for n := range r.Feed.Topics {
		r.Args = append(r.Args, "--topic", fmt.Sprint(n))
	}
	return os.WriteFile(path, text, 0o600)
}
