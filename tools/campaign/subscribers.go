package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
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

type feedService struct {
	feedSpec
	fakeservice.Server
	plan        *plan
	random      *rand.Rand // guarded by Mu
	topics      []*priceTopic
	connectedAt time.Time // when all clients were first connected; zero: not yet
	cut         bool      // the service has disconnected client 0

	faultAt, reconnectedAt, firstCloseAt time.Time // times of the fault, the reconnect, and the first close by a client
}

// A priceTopic is a topic with its prices and open streams.
type priceTopic struct {
	price         int
	sentPrices    []int
	streams       map[*priceStream]bool
	noRepeatUntil int // index of the last message that must not repeat the previous price
	faultIndex    int // index of the message at which the fault starts; -1: not sent yet
}

// A priceStream is a stream and the number of its client.
type priceStream struct {
	*fakeservice.Stream
	client int // -1: not a client of the run
}

func (f *feedService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	topic, err := strconv.Atoi(r.URL.Query().Get("topic"))
	if err != nil || topic < 0 || topic >= len(f.topics) {
		http.NotFound(w, r)
		return
	}
	t, s := f.topics[topic], &priceStream{f.NewStream(fakeservice.Format{}, w, r), f.plan.number(r.URL.Query().Get("id"))}
	if s.Head() != nil {
		return
	}
	f.join(t, s, r.Header.Get("Last-Event-ID"))
	end := s.Run()
	f.Mu.Lock()
	defer f.Mu.Unlock()
	delete(t.streams, s)
	if end == fakeservice.EndClient && s.client >= 0 && !f.connectedAt.IsZero() && f.firstCloseAt.IsZero() {
		f.firstCloseAt = time.Now()
	}
}

// join adds a stream to a topic, and queues the history or, if the stream resumes, the messages after lastID.
func (f *feedService) join(t *priceTopic, s *priceStream, lastID string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.cut && s.client == 0 {
		f.reconnectedAt = time.Now()
	}
	first := max(len(t.sentPrices)-f.History, 0)
	if last, err := strconv.Atoi(strings.TrimPrefix(lastID, "m")); err == nil && f.Cut == cutResumed {
		first = last + 1
	}
	for n := first; n < len(t.sentPrices); n++ {
		f.enqueue(t, s, n, time.Duration(n-first)*f.HistoryInterval)
	}
	t.streams[s] = true
}

// enqueue queues message n on a stream, to be written after the delay (and Lag, for the client with the number Topics).
func (f *feedService) enqueue(t *priceTopic, s *priceStream, n int, delay time.Duration) {
	if s.client == f.Topics && f.Lag > 0 {
		delay += f.Lag
	}
	s.Queue(time.Now().Add(delay), true, func(due time.Time) error {
		f.Lateness.Record(due)
		return s.Write(f.block(t, s, n))
	})
}

// text returns the event for message n with the given price, as written to a stream.
func (f *feedService) text(s *priceStream, n, price int) (text string) {
	if f.Cut == cutResumed || f.SharedSource == "id" {
		text = fmt.Sprintf("id: m%d\n", n)
	}
	client := 0
	if f.Personal {
		client = s.client
	}
	if f.Comments {
		text += ": a comment\n"
	}
	return fmt.Sprintf("event: price\n%sdata: {\"price\":%d,\"client\":%d}\n\n", text, price, client)
}

func (f *feedService) block(t *priceTopic, s *priceStream, n int) string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	text, at := f.text(s, n, t.sentPrices[n]), t.faultIndex
	if at < 0 || n < at || !f.affects(f.plan, s.client) {
		return text
	}
	switch f.Fault {
	case feedSilent:
		return ""
	case feedSeveral:
		if n < at+feedBurst {
			return ""
		}
	case feedSwapped:
		switch n {
		case at:
			return ""
		case at + 1:
			return text + f.text(s, at, t.sentPrices[at])
		}
	default:
		if n > at {
			return text
		}
		return map[string]string{feedDuplicated: text + text, feedChanged: f.text(s, n, 123456789)}[f.Fault]
	}
	return text
}

func (f *feedService) run() {
	for {
		f.Mu.Lock()
		pause := time.Duration((0.5 + f.random.Float64()) * float64(f.MessageInterval*time.Duration(f.Burst)))
		f.Mu.Unlock()
		select {
		case <-f.Stopped:
			return
		case <-time.After(pause):
		}
		f.Mu.Lock()
		for i, t := range f.topics {
			for range f.Burst {
				f.send(i, t)
			}
		}
		f.Mu.Unlock()
	}
}

// send sends one message to all clients of a topic. When the fault is due, send starts the fault. When the disconnect
// is due, client 0 is disconnected and does not receive the message.
func (f *feedService) send(topic int, t *priceTopic) {
	n := len(t.sentPrices)
	since := f.sinceConnected()
	if !f.Repeats || n <= t.noRepeatUntil || f.random.IntN(3) > 0 {
		t.price += 1 + f.random.IntN(20)
	}
	disconnects := topic == 0 && f.Cut != "" && !f.cut && since > f.CutDelay
	if topic == 0 && f.Fault != "" && t.faultIndex < 0 && since > f.FaultDelay && (f.Fault != feedResume || disconnects) {
		t.price += 37 // so that the content differs from the previous and the next message
		t.faultIndex, t.noRepeatUntil, f.faultAt = n, n+feedBurst, time.Now()
	}
	t.sentPrices = append(t.sentPrices, t.price)
	for s := range t.streams {
		if disconnects && s.client == 0 {
			f.cut = true
			s.Queue(time.Now(), true, func(time.Time) error { return fakeservice.ErrOver })
			continue
		}
		f.enqueue(t, s, n, 0)
	}
}

// wasLate reports whether the fault or the reconnect came too late to be checked, because the machine was too busy.
func (f *feedService) wasLate() bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	const margin = 2 * time.Second // messages just before the end are not expected
	isCheckable := func(at time.Time) bool { return !at.IsZero() && f.firstCloseAt.Sub(at) >= margin }
	return f.Fault != "" && !isCheckable(f.faultAt) || f.Cut != "" && !isCheckable(f.reconnectedAt)
}

// sinceConnected returns the time since all clients were first connected, or 0 if some have not connected yet.
func (f *feedService) sinceConnected() time.Duration {
	if f.connectedAt.IsZero() {
		clients := map[int]bool{}
		for _, t := range f.topics {
			for s := range t.streams {
				clients[s.client] = true
			}
		}
		if delete(clients, -1); len(clients) < f.plan.Connections {
			return 0
		}
		f.connectedAt = time.Now()
	}
	return time.Since(f.connectedAt)
}
