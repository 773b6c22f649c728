package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A feedService sends prices.
type feedService struct {
	feedSpec
	fakeservice.Server
	plan   *plan
	random *rand.Rand // with Mu
	topics []*priceTopic
	ready  time.Time // all clients were connected
	cut    bool      // a client was disconnected

	faultAt, backAt, endAt time.Time // of the fault, the reconnect, and the first stream that a client ended
}

// A priceTopic has the messages to the clients of one topic, and those that are connected.
type priceTopic struct {
	price   int
	sent    []int
	streams map[*priceStream]bool
	hold    int // the price stays other than before until that message
	faulty  int // the message with the fault; -1: it was not sent yet
}

// A priceStream is one stream. Its queue has indexes of messages; −1 ends it.
type priceStream struct {
	client       int // −1: not one of the run
	firstMessage int // first message
	queue        chan feedItem
}

// A feedItem is a message for one stream.
type feedItem struct {
	n   int
	due time.Time
}

func (f *feedService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	which, err := strconv.Atoi(r.URL.Query().Get("topic"))
	if err != nil || which >= len(f.topics) {
		http.NotFound(w, r)
		return
	}
	t := f.topics[which]
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	s := f.join(t, r)
	defer func() {
		f.Mu.Lock()
		delete(t.streams, s)
		f.Mu.Unlock()
	}()
	for {
		select {
		case <-r.Context().Done():
			f.recordEnd(s)
			return
		case i := <-s.queue:
			if i.n < 0 {
				return
			}
			select {
			case <-time.After(time.Until(i.due)):
			case <-r.Context().Done():
				f.recordEnd(s)
				return
			}
			for _, text := range f.messages(t, s, i) {
				_, _ = fmt.Fprint(w, text)
			}
			w.(http.Flusher).Flush()
		}
	}
}

// join adds a stream to a topic, with the messages that it begins with.
func (f *feedService) join(t *priceTopic, r *http.Request) *priceStream {
	s := &priceStream{client: -1, queue: make(chan feedItem, 10_000)}
	if n, ok := strings.CutPrefix(r.URL.Query().Get("id"), f.plan.Prefix); ok {
		if client, err := strconv.Atoi(n); err == nil {
			s.client = client
		}
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.cut && s.client == 0 {
		f.backAt = time.Now()
	}
	s.firstMessage = max(len(t.sent)-f.History, 0)
	if last, err := strconv.Atoi(strings.TrimPrefix(r.Header.Get("Last-Event-ID"), "m")); err == nil && f.Cut == cutResumed {
		s.firstMessage = last + 1
	}
	for n := s.firstMessage; n < len(t.sent); n++ {
		f.enqueue(s, n, time.Duration(n-s.firstMessage)*f.HistoryIn)
	}
	t.streams[s] = true
	return s
}

// enqueue queues a message. The messages of a client that lags are due later.
func (f *feedService) enqueue(s *priceStream, n int, in time.Duration) {
	if s.client == f.Topics && f.Lag > 0 {
		in += f.Lag
	}
	s.queue <- feedItem{n, time.Now().Add(in)}
}

// text returns a message for one client.
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

// messages returns the content that a client receives at a message.
func (f *feedService) messages(t *priceTopic, s *priceStream, i feedItem) []string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	n := i.n
	f.Late.Record(i.due)
	text := f.text(s, n, t.sent[n])
	at := t.faulty
	if at < 0 || !f.hits(f.plan, s.client) {
		return []string{text}
	}
	switch f.Fault {
	case feedSilent:
		if n >= at {
			return nil
		}
	case feedSeveral:
		if n >= at && n < at+feedBurst {
			return nil
		}
	case feedDoubled:
		if n == at {
			return []string{text, text}
		}
	case feedChanged:
		if n == at {
			return []string{f.text(s, n, 123456789)}
		}
	case feedSwapped:
		switch n {
		case at:
			return nil
		case at + 1:
			return []string{text, f.text(s, at, t.sent[at])}
		}
	default:
		if n == at {
			return nil
		}
	}
	return []string{text}
}

// run sends messages until the run ends.
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

// send sends one message to all clients of a topic.
func (f *feedService) send(which int, t *priceTopic) {
	n := len(t.sent)
	since := f.sinceReady()
	if !f.Repeats || n <= t.hold || f.random.IntN(3) > 0 {
		t.price += 1 + f.random.IntN(20)
	}
	disconnects := which == 0 && f.Cut != "" && !f.cut && since > f.CutAfter
	if which == 0 && f.Fault != "" && t.faulty < 0 && since > f.FaultDelay && (f.Fault != feedResume || disconnects) {
		t.price += 37 // its neighbours have other content
		t.faulty, t.hold, f.faultAt = n, n+feedBurst, time.Now()
	}
	t.sent = append(t.sent, t.price)
	for s := range t.streams {
		if disconnects && s.client == 0 {
			f.cut = true
			s.queue <- feedItem{n: -1}
			continue
		}
		f.enqueue(s, n, 0)
	}
}

// recordEnd records that a client ended its stream.
func (f *feedService) recordEnd(s *priceStream) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if s.client >= 0 && !f.ready.IsZero() && f.endAt.IsZero() {
		f.endAt = time.Now()
	}
}

// wasLate reports whether the machine was so busy that the fault or the reconnect was too late to be checked, or did
// not occur.
func (f *feedService) wasLate() bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	const least = 2 * time.Second // messages of the last second are not expected
	isEarly := func(at time.Time) bool { return !at.IsZero() && f.endAt.Sub(at) >= least }
	return f.Fault != "" && !isEarly(f.faultAt) || f.Cut != "" && !isEarly(f.backAt)
}

// sinceReady returns for how long all clients have been connected; 0: they are not.
func (f *feedService) sinceReady() time.Duration {
	if f.ready.IsZero() {
		clients := map[int]bool{}
		for _, t := range f.topics {
			for s := range t.streams {
				clients[s.client] = true
			}
		}
		if delete(clients, -1); len(clients) < f.plan.Connections {
			return 0
		}
		f.ready = time.Now()
	}
	return time.Since(f.ready)
}
