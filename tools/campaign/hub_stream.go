package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A feed is one stream of a listener.
type feed struct {
	*hub
	listener *listener
	span     int
	w        http.ResponseWriter
	conn     *http.ResponseController
	gone     <-chan struct{}
	end      chan struct{}
	ended    bool
	how      string    // it is to end
	left     bool      // its client has come back on another stream
	told     bool      // it says that messages are missing
	until    time.Time // its token is good; zero: for ever

	queue sync.Mutex
	items []*item
	wake  chan struct{}
	held  []*letter // wait for the next one
	again []*letter // come again with the next one
	muted bool
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
	case f.wake <- struct{}{}:
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
	h.open.Add(1)
	defer h.open.Done()
	f := &feed{
		hub: h, listener: d, w: w, conn: http.NewResponseController(w), gone: r.Context().Done(), end: make(chan struct{}), wake: make(chan struct{}, 1), until: until,
	}
	last := r.Header.Get("Last-Event-ID")
	if h.Resume == "query" || h.Resume == "data" {
		last = r.URL.Query().Get("since")
	}
	f.run(last)
}

// arrive notes that a client is there; false: it is refused.
func (h *hub) arrive(id string, topic *hubTopic) (*listener, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.number(id)
	if n < 0 {
		h.others[id] = &listener{id: id, n: n, topic: topic}
		return h.others[id], true
	}
	d := h.byID[id]
	if d == nil {
		d = &listener{id: id, n: n, topic: topic, arrived: time.Now()}
		h.byID[id] = d
	}
	if h.fault.Answer != 0 && h.fault.meant(id) {
		return d, false
	}
	return d, true
}

// join is the second request of a stream.
func (h *hub) join(w http.ResponseWriter, r *http.Request) {
	client := strings.TrimPrefix(r.URL.Path, "/join/")
	h.mu.Lock()
	joined := h.joins[client]
	delete(h.joins, client)
	h.mu.Unlock()
	id, _, _ := strings.Cut(client, "~")
	switch {
	case joined == nil:
		http.NotFound(w, r)
	case h.fault.Join != 0 && h.fault.meant(id):
		h.mu.Lock()
		if d := h.byID[id]; d != nil {
			d.unjoin = true
		}
		h.mu.Unlock()
		w.WriteHeader(h.fault.Join)
	default:
		close(joined)
		time.Sleep(h.Slow / 2)
		w.WriteHeader(http.StatusAccepted)
	}
}

// end ends a stream as its client asks.
func (h *hub) end(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := r.URL.Query().Get("id")
	d := h.byID[id]
	if d == nil {
		d = h.others[id]
	}
	if d == nil || d.present == nil {
		http.NotFound(w, r)
		return
	}
	if d.asked.IsZero() {
		d.asked = time.Now()
	}
	if !h.fault.Never || !h.fault.meant(d.id) {
		d.present.finish(endAsked)
	}
}

// finish has the stream end in that way. With the lock of the hub.
func (f *feed) finish(how string) {
	if !f.ended {
		f.ended, f.how = true, how
		close(f.end)
	}
}

// run serves the stream until it is over.
func (f *feed) run(last string) {
	d := f.listener
	if f.Start > 0 && d.n >= 0 && len(d.spans) == 0 {
		f.mu.Lock()
		late := time.Duration(f.random.Float64() * float64(f.Start))
		f.mu.Unlock()
		time.Sleep(late)
	}
	if f.head(last) != nil || f.Then && !f.hello() {
		return
	}
	f.mu.Lock()
	f.begin(last)
	f.mu.Unlock()
	how := f.serve()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(d.topic.feeds, f)
	if d.present == f {
		d.present = nil
	}
	if how == endClient && !d.asked.IsZero() && f.ended {
		how = endAsked
	}
	if d.n >= 0 {
		d.spans[f.span].to, d.spans[f.span].how = time.Now(), how
	}
	if how == endReset {
		reset(f.w)
	}
}

// head is what a stream begins with. It is on the list of its topic before a client can know of it.
func (f *feed) head(last string) error {
	header := f.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("Connection", "close")
	if f.Framing == "close" {
		header.Set("Transfer-Encoding", "identity")
	}
	if f.tells(last) {
		header.Set("X-Gap", "Yes")
	}
	body := ""
	if f.BOM {
		body = "\ufeff"
	}
	if f.Retry > 0 {
		body += fmt.Sprintf("retry: %d\n\n", f.Retry)
	}
	f.w.WriteHeader(http.StatusOK)
	if err := f.conn.Flush(); err != nil {
		return err
	}
	return f.write(body)
}

// hello waits for the second request.
func (f *feed) hello() bool {
	joined := make(chan struct{})
	f.mu.Lock()
	f.guests++
	client := fmt.Sprintf("%s~%d", f.listener.id, f.guests)
	f.joins[client] = joined
	f.mu.Unlock()
	if f.write("event: hello\ndata: {\"you\":{\"id\":\""+client+"\"}}\n\n") != nil {
		return false
	}
	select {
	case <-joined:
		return true
	case <-f.gone:
		return false
	}
}

// begin puts the stream on the list of its topic, and brings back what its client missed. With the lock of the hub.
func (f *feed) begin(last string) {
	d := f.listener
	d.topic.feeds[f] = true
	old := d.present
	d.present = f
	if d.n < 0 {
		return
	}
	if old != nil { // its client is on this stream now
		delete(d.topic.feeds, old)
		old.finish(endClient)
		old.left = true
	}
	d.turned = 0
	f.span = len(d.spans)
	d.spans = append(d.spans, openSpan{from: time.Now(), resumed: f.span > 0 && (last != "" || f.sendsIDs() && d.received(f.span).Max > 0), withID: last != ""})
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
	if f.fault.meant(f.listener.id) {
		i -= f.fault.Overlap
	}
	return max(i, 0)
}

// serve writes what comes, until the stream is over.
func (f *feed) serve() (how string) {
	began := time.Now()
	beat := time.NewTimer(f.beat())
	defer beat.Stop()
	lifetime := f.lifetime()
	if !f.until.IsZero() {
		lifetime = time.Until(f.until)
	}
	for {
		var due, over <-chan time.Time
		if next := f.next(); !next.IsZero() {
			due = time.After(time.Until(next))
		}
		if lifetime > 0 {
			over = time.After(time.Until(began.Add(lifetime)))
		}
		select {
		case <-f.gone:
			return endClient
		case <-f.hub.over:
			return endClient
		case <-f.end:
			select {
			case <-time.After(f.Ends):
			case <-f.gone:
			}
			return f.how
		case <-over:
			return endInOrder
		case <-f.wake:
		case <-due:
			i := f.take()
			if f.isLate(i.due); f.item(i) != nil {
				return f.broken()
			}
		case <-beat.C:
			beat.Reset(f.beat())
			if f.Heartbeat != "" && !f.muted && (!f.fault.Beats || f.listener.n < 0) && f.show(heartbeats[f.Heartbeat].text, frame{kind: frameBeat}) != nil {
				return endClient
			}
		}
	}
}

// isLate notes by how much this program was late, where it was not meant to be.
func (f *feed) isLate(due time.Time) {
	if f.fault.Act == hubDelay {
		return
	}
	late := int64(time.Since(due))
	for past := f.late.Load(); late > past && !f.late.CompareAndSwap(past, late); past = f.late.Load() {
	}
}

// beat is how long the next heartbeat takes.
func (f *feed) beat() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(time.Duration((.5+.5*f.random.Float64())*float64(f.Beat)), 10*time.Millisecond)
}

// lifetime is how long the stream will live, 0 for ever.
func (f *feed) lifetime() time.Duration {
	if f.fault.Lives > 0 && f.listener.n >= 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		return time.Duration(f.random.ExpFloat64() * float64(f.fault.Lives))
	}
	if f.End != "server" || f.listener.n < 0 {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	share := 1.03 + .14*f.random.Float64()
	if f.fault.Overdue && f.fault.meant(f.listener.id) {
		share = 3
	}
	if f.fault.Early && f.fault.meant(f.listener.id) && f.span == 0 {
		share = .7
	}
	return time.Duration(share * f.Lifetime * float64(time.Second))
}
