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

// A feed is one stream of a listener.
type feed struct {
	*fakeservice.Stream
	*hub
	listener     *listener
	span         int
	replaced     bool // its client has opened another stream
	announcesGap bool // it announces that messages are missing

	queue   sync.Mutex
	items   []*item
	delayed []*letter // wait for the next message
	repeats []*letter // are sent again with the next message
	muted   bool
}

// An item is to be written to a stream.
type item struct {
	letter *letter
	text   string // of what is no message
	kind   string
	due    time.Time
}

// put queues an item. Where order matters none overtakes another.
func (f *feed) put(i *item) {
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

// next is when the first item is due; the zero time: there is none.
func (f *feed) next() (due time.Time) {
	f.queue.Lock()
	defer f.queue.Unlock()
	if len(f.items) > 0 {
		due = f.items[0].due
	}
	return due
}

func (f *feed) take() *item {
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
	until, ok := h.tokenOf(w, r, id)
	if !ok {
		return
	}
	d, ok := h.arrive(id, topic)
	if h.turnsAway(w, d) {
		return
	}
	if !ok {
		if h.fault.Answer == http.StatusOK {
			w.Header().Set("Content-Type", "text/html")
		}
		w.WriteHeader(h.fault.Answer)
		return
	}
	h.Open.Add(1)
	defer h.Open.Done()
	f := &feed{Stream: h.NewStream(h.Format, w, r), hub: h, listener: d}
	f.Wake, f.Until = make(chan struct{}, 1), until
	last := r.Header.Get("Last-Event-ID")
	if h.Resume == "query" || h.Resume == "data" {
		last = r.URL.Query().Get("since")
	}
	f.run(last)
}

// arrive notes that a client is there; false: it is refused.
func (h *hub) arrive(id string, topic *hubTopic) (*listener, bool) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	n := h.number(id)
	if n < 0 {
		h.others[id] = &listener{Client: fakeservice.Client{ID: id}, n: n, topic: topic}
		return h.others[id], true
	}
	d := h.byID[id]
	if d == nil {
		d = &listener{Client: fakeservice.Client{ID: id}, n: n, topic: topic, arrived: time.Now()}
		h.byID[id] = d
	}
	if h.fault.Answer != 0 && h.fault.Meant(id) {
		return d, false
	}
	return d, true
}

// join is the second request of a stream.
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
	case h.fault.Join != 0 && h.fault.Meant(id):
		h.Mu.Lock()
		if d := h.byID[id]; d != nil {
			d.unjoin = true
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
		d = h.others[id]
	}
	if d == nil {
		http.NotFound(w, r)
		return
	}
	h.EndStream(w, r, &d.Client, h.fault.Never && h.fault.Meant(d.ID))
}

// run serves the stream until it is over.
func (f *feed) run(last string) {
	d := f.listener
	if f.Start > 0 && d.n >= 0 && len(d.Spans) == 0 {
		f.Mu.Lock()
		late := time.Duration(f.random.Float64() * float64(f.Start))
		f.Mu.Unlock()
		time.Sleep(late)
	}
	if f.announces(last) {
		f.W.Header().Set("X-Gap", "Yes")
	}
	if f.Head() != nil || f.Then && !f.hello() {
		return
	}
	f.Mu.Lock()
	f.begin(last)
	f.Mu.Unlock()
	how := f.serve()
	f.Mu.Lock()
	defer f.Mu.Unlock()
	delete(d.topic.feeds, f)
	if d.feed == f {
		d.feed, d.Present = nil, nil
	}
	if how == fakeservice.EndClient && !d.Asked.IsZero() && f.How != "" {
		how = fakeservice.EndAsked
	}
	if d.n >= 0 {
		d.Spans[f.span].To, d.Spans[f.span].How = time.Now(), how
	}
	if how == fakeservice.EndReset {
		fakeservice.Reset(f.W)
	}
}

// hello waits for the second request.
func (f *feed) hello() bool {
	joined := make(chan struct{})
	f.Mu.Lock()
	f.guests++
	client := fmt.Sprintf("%s~%d", f.listener.ID, f.guests)
	f.joins[client] = joined
	f.Mu.Unlock()
	if f.Write("event: hello\ndata: {\"you\":{\"id\":\""+client+"\"}}\n\n") != nil {
		return false
	}
	select {
	case <-joined:
		return true
	case <-f.Gone:
		return false
	}
}

// begin puts the stream on the list of its topic, and brings back what its client missed. With the lock of the hub.
func (f *feed) begin(last string) {
	d := f.listener
	d.topic.feeds[f] = true
	old := d.feed
	d.feed, d.Present = f, f.Stream
	if d.n < 0 {
		return
	}
	if old != nil { // its client is on this stream now
		delete(d.topic.feeds, old)
		old.Finish(fakeservice.EndClient)
		old.replaced = true
	}
	d.turned = 0
	f.span = len(d.Spans)
	d.Client.Begin(f.Stream)
	d.Last().WithID = last != ""
	d.Last().Resumed = f.span > 0 && (last != "" || f.sendsIDs() && d.received(f.span).Max > 0)
	if f.Resume != "none" {
		d.readUpTo(f.span-1, d.topic.last(f, last), f.Delivery != "")
	}
	if last == "" || f.Resume == "none" {
		return
	}
	f.tell()
	for _, l := range f.seamed(d.topic.behind(f, last), old != nil) {
		f.put(&item{letter: l, due: time.Now()})
	}
}

// behind is the index of the first letter that a client does not have which was last sent that id, or a smaller one
// where it gets some of them again.
func (t *hubTopic) behind(f *feed, last string) int {
	i, ok := t.strange[last]
	for n, l := range t.letters {
		if !ok && last == f.goesOnBy(l) {
			i = n + 1
		}
	}
	if f.Delivery != "" {
		i -= 2
	}
	if f.fault.Meant(f.listener.ID) {
		i -= f.fault.Overlap
	}
	return max(i, 0)
}

// serve writes what comes, until the stream is over. It returns how the stream ended.
func (f *feed) serve() (how string) {
	if lifetime := f.lifetime(); f.Until.IsZero() && lifetime > 0 {
		f.Until = time.Now().Add(lifetime)
	}
	beat := time.Now().Add(f.beat())
	for {
		due := f.next()
		ended, err := f.Wait(earliest(due, f.Until, beat), f.Ended)
		now := time.Now()
		switch {
		case err != nil:
			return fakeservice.EndClient
		case ended:
			f.linger(now.Add(f.Ends))
			return f.How
		case !f.Until.IsZero() && !now.Before(f.Until):
			return fakeservice.EndInOrder
		case !due.IsZero() && !now.Before(due):
			if f.item(f.take()) != nil {
				return f.broken()
			}
		case !now.Before(beat):
			beat = now.Add(f.beat())
			if f.heartbeat() != nil {
				return fakeservice.EndClient
			}
		}
	}
}

// linger waits until a time, unless the client goes.
func (f *feed) linger(until time.Time) {
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
func (f *feed) heartbeat() error {
	if f.Heartbeat == "" || f.muted || f.fault.Beats && f.listener.n >= 0 {
		return nil
	}
	return f.show(heartbeats[f.Heartbeat].text, frame{kind: frameBeat})
}

// beat is how long the next heartbeat takes.
func (f *feed) beat() time.Duration {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return max(time.Duration((.5+.5*f.random.Float64())*float64(f.Beat)), 10*time.Millisecond)
}

// lifetime is how long the stream will live, 0 for ever.
func (f *feed) lifetime() time.Duration {
	if f.fault.Lives > 0 && f.listener.n >= 0 {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		return time.Duration(f.random.ExpFloat64() * float64(f.fault.Lives))
	}
	if f.End != "server" || f.listener.n < 0 {
		return 0
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	share := 1.03 + .14*f.random.Float64()
	if f.fault.Overdue && f.fault.Meant(f.listener.ID) {
		share = 3
	}
	if f.fault.Early && f.fault.Meant(f.listener.ID) && f.span == 0 {
		share = .7
	}
	return time.Duration(share * f.Lifetime * float64(time.Second))
}
