package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A hubStream is one stream of a client.
type hubStream struct {
	*fakeservice.Stream
	*hub
	client       *hubClient
	span         int
	replaced     bool // its client has opened another stream
	announcesGap bool // it announces that messages are missing

	queue   sync.Mutex
	items   []*item
	delayed []*message // wait for the next message
	repeats []*message // are sent again with the next message
	muted   bool
}

// An item is to be written to a stream.
type item struct {
	message *message
	text    string // of a block that is not a message
	kind    string
	due     time.Time
}

// enqueue queues an item. If order matters, no item overtakes another.
func (f *hubStream) enqueue(i *item) {
	f.queue.Lock()
	if last := len(f.items) - 1; last >= 0 && f.Order == "" && i.due.Before(f.items[last].due) {
		i.due = f.items[last].due
	}
	f.items = append(f.items, i)
	slices.SortStableFunc(f.items, func(a, b *item) int { return a.due.Compare(b.due) })
	f.queue.Unlock()
	select {
	case f.Wake <- struct{}{}:
	default:
	}
}

// nextDue returns when the first item is due; the zero time: there is none.
func (f *hubStream) nextDue() (due time.Time) {
	f.queue.Lock()
	defer f.queue.Unlock()
	if len(f.items) > 0 {
		due = f.items[0].due
	}
	return due
}

func (f *hubStream) dequeue() *item {
	f.queue.Lock()
	defer f.queue.Unlock()
	i := f.items[0]
	f.items = f.items[1:]
	return i
}

// subscribe opens a stream, unless the fault has another answer.
func (h *hub) subscribe(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	if h.Header {
		id = r.Header.Get("X-Stream")
	}
	topic := h.topicOf(r)
	if topic == nil || id == "" {
		http.Error(w, "which one?", http.StatusBadRequest)
		return
	}
	until, ok := h.readToken(w, r, id)
	if !ok {
		return
	}
	d, ok := h.admit(id, topic)
	if h.refuseReconnect(w, d) {
		return
	}
	if !ok {
		if h.fault.Answer == http.StatusOK {
			w.Header().Set("Content-Type", "text/html")
		}
		w.WriteHeader(h.fault.Answer)
		return
	}
	h.Handlers.Add(1)
	defer h.Handlers.Done()
	f := &hubStream{Stream: h.NewStream(h.Format, w, r), hub: h, client: d}
	f.Wake, f.EndAt = make(chan struct{}, 1), until
	last := r.Header.Get("Last-Event-ID")
	if h.Resume == "query" || h.Resume == "data" {
		last = r.URL.Query().Get("since")
	}
	f.run(last)
}

// admit records the first request of a client; false: it is refused.
func (h *hub) admit(id string, topic *hubTopic) (*hubClient, bool) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	n := h.number(id)
	if n < 0 {
		h.otherClients[id] = &hubClient{Client: fakeservice.Client{ID: id}, n: n, topic: topic}
		return h.otherClients[id], true
	}
	d := h.byID[id]
	if d == nil {
		d = &hubClient{Client: fakeservice.Client{ID: id}, n: n, topic: topic, firstRequestAt: time.Now()}
		h.byID[id] = d
	}
	if h.fault.Answer != 0 && h.fault.Matches(id) {
		return d, false
	}
	return d, true
}

// join handles the second request of a stream.
func (h *hub) join(w http.ResponseWriter, r *http.Request) {
	client := strings.TrimPrefix(r.URL.Path, "/join/")
	h.Mu.Lock()
	joined := h.joins[client]
	delete(h.joins, client)
	h.Mu.Unlock()
	id, _, _ := strings.Cut(client, "~")
	switch {
	case joined == nil:
		http.NotFound(w, r)
	case h.fault.Join != 0 && h.fault.Matches(id):
		h.Mu.Lock()
		if d := h.byID[id]; d != nil {
			d.joinRefused = true
		}
		h.Mu.Unlock()
		w.WriteHeader(h.fault.Join)
	default:
		close(joined)
		time.Sleep(h.Slow / 2)
		w.WriteHeader(http.StatusAccepted)
	}
}

// requestEnd ends a stream whose client requests it.
func (h *hub) requestEnd(w http.ResponseWriter, r *http.Request) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	id := r.URL.Query().Get("id")
	d := h.byID[id]
	if d == nil {
		d = h.otherClients[id]
	}
	if d == nil {
		http.NotFound(w, r)
		return
	}
	h.EndStream(w, r, &d.Client, h.fault.NeverEnds && h.fault.Matches(d.ID))
}

// run serves the stream until it is over.
func (f *hubStream) run(last string) {
	d := f.client
	if f.Start > 0 && d.n >= 0 && len(d.Spans) == 0 {
		f.Mu.Lock()
		late := time.Duration(f.random.Float64() * float64(f.Start))
		f.Mu.Unlock()
		time.Sleep(late)
	}
	if f.announces(last) {
		f.W.Header().Set("X-Gap", "Yes")
	}
	if f.Head() != nil || f.Then && !f.awaitSecondRequest() {
		return
	}
	f.Mu.Lock()
	f.begin(last)
	f.Mu.Unlock()
	end := f.serve()
	f.Mu.Lock()
	defer f.Mu.Unlock()
	delete(d.topic.streams, f)
	if d.stream == f {
		d.stream, d.Open = nil, nil
	}
	if end == fakeservice.EndClient && !d.EndRequestedAt.IsZero() && f.EndReason != "" {
		end = fakeservice.EndRequested
	}
	if d.n >= 0 {
		d.Spans[f.span].To, d.Spans[f.span].EndReason = time.Now(), end
	}
	if end == fakeservice.EndReset {
		fakeservice.Reset(f.W)
	}
}

// awaitSecondRequest waits for the second request.
func (f *hubStream) awaitSecondRequest() bool {
	joined := make(chan struct{})
	f.Mu.Lock()
	f.guests++
	client := fmt.Sprintf("%s~%d", f.client.ID, f.guests)
	f.joins[client] = joined
	f.Mu.Unlock()
	if f.Write("event: hello\ndata: {\"you\":{\"id\":\""+client+"\"}}\n\n") != nil {
		return false
	}
	select {
	case <-joined:
		return true
	case <-f.ClientGone:
		return false
	}
}

// begin adds the stream to the list of its topic, and returns the messages that its client missed. The caller holds
// the lock of the hub.
func (f *hubStream) begin(last string) {
	d := f.client
	d.topic.streams[f] = true
	old := d.stream
	d.stream, d.Open = f, f.Stream
	if d.n < 0 {
		return
	}
	if old != nil { // its client is on this stream now
		delete(d.topic.streams, old)
		old.Finish(fakeservice.EndClient)
		old.replaced = true
	}
	d.refusals = 0
	f.span = len(d.Spans)
	d.Client.Begin(f.Stream)
	d.Last().WithID = last != ""
	d.Last().Resumed = f.span > 0 && (last != "" || f.sendsIDs() && d.receivedBefore(f.span).Max > 0)
	if f.Resume != "none" {
		d.readUpTo(f.span-1, d.topic.last(f, last), f.Delivery != "")
	}
	if last == "" || f.Resume == "none" {
		return
	}
	f.announceGap()
	for _, l := range f.resumedMessages(d.topic.resumeIndex(f, last), old != nil) {
		f.enqueue(&item{message: l, due: time.Now()})
	}
}

// resumeIndex returns the index of the first message that a client lacks which was last sent that id, or a smaller
// one if it gets some of them again.
func (t *hubTopic) resumeIndex(f *hubStream, last string) int {
	i, ok := t.foreignIDs[last]
	for n, l := range t.messages {
		if !ok && last == f.resumeID(l) {
			i = n + 1
		}
	}
	if f.Delivery != "" {
		i -= 2
	}
	if f.fault.Matches(f.client.ID) {
		i -= f.fault.Overlap
	}
	return max(i, 0)
}

// serve writes items until the stream ends. It returns how the stream ended.
func (f *hubStream) serve() (end string) {
	if lifetime := f.lifetime(); f.EndAt.IsZero() && lifetime > 0 {
		f.EndAt = time.Now().Add(lifetime)
	}
	nextHeartbeat := time.Now().Add(f.heartbeatDelay())
	for {
		due := f.nextDue()
		ended, err := f.Wait(earliest(due, f.EndAt, nextHeartbeat), f.Ended)
		now := time.Now()
		switch {
		case err != nil:
			return fakeservice.EndClient
		case ended:
			f.awaitUntil(now.Add(f.Ends))
			return f.EndReason
		case !f.EndAt.IsZero() && !now.Before(f.EndAt):
			return fakeservice.EndInOrder
		case !due.IsZero() && !now.Before(due):
			if f.writeItem(f.dequeue()) != nil {
				return f.endReason()
			}
		case !now.Before(nextHeartbeat):
			nextHeartbeat = now.Add(f.heartbeatDelay())
			if f.heartbeat() != nil {
				return fakeservice.EndClient
			}
		}
	}
}

// awaitUntil waits until a time, unless the client disconnects.
func (f *hubStream) awaitUntil(until time.Time) {
	for err := error(nil); err == nil && time.Now().Before(until); {
		_, err = f.Wait(until, nil)
	}
}

// earliest returns the first of these times that is not zero.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// heartbeat writes a heartbeat, if the service sends any.
func (f *hubStream) heartbeat() error {
	if f.Heartbeat == "" || f.muted || f.fault.NoHeartbeats && f.client.n >= 0 {
		return nil
	}
	return f.writeBlock(heartbeats[f.Heartbeat].text, frame{kind: frameHeartbeat})
}

// heartbeatDelay returns the time until the next heartbeat.
func (f *hubStream) heartbeatDelay() time.Duration {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return max(time.Duration((.5+.5*f.random.Float64())*float64(f.HeartbeatInterval)), 10*time.Millisecond)
}

// lifetime returns how long the stream will live; 0: without limit.
func (f *hubStream) lifetime() time.Duration {
	if f.fault.MeanLifetime > 0 && f.client.n >= 0 {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		return time.Duration(f.random.ExpFloat64() * float64(f.fault.MeanLifetime))
	}
	if f.End != "server" || f.client.n < 0 {
		return 0
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	share := 1.03 + .14*f.random.Float64()
	if f.fault.Overdue && f.fault.Matches(f.client.ID) {
		share = 3
	}
	if f.fault.Early && f.fault.Matches(f.client.ID) && f.span == 0 {
		share = .7
	}
	return time.Duration(share * f.Lifetime * float64(time.Second))
}
