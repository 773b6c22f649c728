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

// A feedSpec is a service that sends the same prices to all clients of a topic, without numbers and without being published to. Its
// clients are compared with each other.
type feedSpec struct {
	Topics          int
	MessageInterval time.Duration // mean time between two messages of a topic
	Burst           int           // messages that are sent together
	SharedSource    string        // message.same
	Repeats         bool          // content often stays the same
	Personal        bool          // messages name their client
	History         int           // messages that a new stream begins with
	HistoryIn       time.Duration // between two messages of the history
	Lag             time.Duration // of one client
	Comments        bool
	Cut             string // one client is disconnected once: cutResumed or cutLost; "": none
	Fault           string
	Client          int           // the client with the fault
	FaultDelay      time.Duration // since all clients are connected: the fault
	CutAfter        time.Duration // and the disconnect
}

// Results of a disconnect.
const (
	cutResumed = "resumed" // the service sends what the client missed
	cutLost    = "lost"    // it does not
)

// Faults of a feedSpec.
const (
	feedLost    = "lost"
	feedSeveral = "several lost"
	feedDoubled = "doubled"
	feedSwapped = "swapped"
	feedChanged = "changed"
	feedRunner  = "lost on one runner"
	feedHalf    = "lost on half of the clients"
	feedSilent  = "silent"
	feedResume  = "lost while disconnected"
)

// subscriberKinds are faults of a feed, one each; drawn with -kind subscribers only.
var subscriberKinds = []kind{
	{"subscribers", feedLost, feedFault(feedLost)}, {"subscribers", feedSeveral, feedFault(feedSeveral)},
	{"subscribers", feedDoubled, feedFault(feedDoubled)}, {"subscribers", feedSwapped, feedFault(feedSwapped)},
	{"subscribers", feedChanged, feedFault(feedChanged)}, {"subscribers", feedRunner, feedFault(feedRunner)},
	{"subscribers", feedHalf, feedFault(feedHalf)}, {"subscribers", feedSilent, feedFault(feedSilent)},
	{"subscribers", feedResume, feedFault(feedResume)},
}

// drawSubscribers makes the scenario of a seed.
func drawSubscribers(seed uint64, only string) *scenario {
	r := rand.New(rand.NewPCG(seed, 35))
	sc := &scenario{Seed: seed, Family: "subscribers"}
	k := kind{"subscribers", "clean", feedFault("")}
	if only != "subscribers" || r.IntN(2) == 0 {
		k = oneOf(r, withName(only, subscriberKinds)...)
	}
	sc.Group, sc.Kind = k.group, k.name
	k.prepare(r, sc)
	return sc
}

func feedFault(fault string) prepare {
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
			p.Runners, f.Topics, f.Cut = max(p.Runners, 2), 1, "" // all of its clients are open, and each runner has clients of the topic
		case feedResume:
			f.Cut = cutResumed
		case feedChanged:
			f.SharedSource = "json:$.price"
		}
		p.Connections = f.Topics * p.Runners * (max(2, 6/p.Runners) + r.IntN(4))
		if f.Cut == cutLost {
			p.Seconds += 5 // or too few messages would be checked on the client
		}
		if f.Personal && f.SharedSource == "data" {
			f.SharedSource = "json:$.price"
		}
		if r.IntN(4) == 0 && fault != feedRunner {
			f.Lag = time.Duration(500+r.IntN(2500)) * time.Millisecond
		}
		if f.History > 0 && r.IntN(3) == 0 {
			f.HistoryIn = time.Duration(r.IntN(60)) * time.Millisecond
		}
		if p.Reconnect = f.Cut != "" || r.IntN(2) == 0; f.Cut == cutResumed {
			f.History = 0
		}
		const edge = 3 * time.Second
		f.CutAfter = edge + time.Duration(r.Int64N(int64(p.hold()-3*edge)))
		f.FaultDelay = edge + time.Duration(r.Int64N(int64(p.hold()-2*edge)))
		f.Client = f.Topics * (2 + r.IntN(p.Connections/f.Topics-2)) // neither the one that lags nor the one that is disconnected
		if fault == feedResume {
			f.Client, f.FaultDelay = 0, f.CutAfter
		}
		sc.Plan, sc.Feed = *p, f
	}
}

// hits reports whether a client has the fault.
func (f *feedSpec) hits(p *plan, client int) bool {
	if client < 0 || f.Fault == "" || client%f.Topics != 0 {
		return false
	}
	switch f.Fault {
	case feedRunner:
		return client%p.Runners == f.Client%p.Runners
	case feedHalf:
		return client >= p.Connections/2
	}
	return client == f.Client
}

// expectFeed returns the verdict that follows from the fault.
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
		if f.hits(&sc.Plan, n) {
			e.Devices[sc.Plan.id(n)] = true
			clients++
		}
	}
	switch f.Fault {
	case feedSilent:
		e.Counts["missed"] = span{1, unbounded}
	case feedSeveral:
		e.Counts["missed"] = exactCount(feedBurst)
	case feedDoubled:
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

// startFeed starts the feed of a scenario.
func (r *run) startFeed(l net.Listener) error {
	f := &feedService{feedSpec: *r.Feed, plan: &r.Plan, random: rand.New(rand.NewPCG(r.Seed, 0xfeed))}
	for range f.Topics {
		f.topics = append(f.topics, &priceTopic{streams: map[*priceStream]bool{}, hold: -1, faulty: -1})
	}
	r.feed = f
	f.Serve(&http.Server{Handler: f, ReadHeaderTimeout: time.Minute}, l)
	f.Handlers.Go(f.run)
	r.add(&f.Server)
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

// isSubscribers reports whether a name is of a kind of feeds, or of their group.
func isSubscribers(only string) bool { return len(withName(only, subscriberKinds)) > 0 }
