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
