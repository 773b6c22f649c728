package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

type hubStream struct {
	*fakeservice.Stream
	*hub
	client       *hubClient
	span         int  // index of the stream among its client's streams
	replaced     bool // the client has opened another stream
	announcesGap bool // the stream announces missing messages
	muted        bool // the stream writes no more blocks
}

// enqueue queues a block. The block does not overtake others unless the description allows any order.
func (f *hubStream) enqueue(due time.Time, write func() error) {
	f.Queue(due, f.Order == "", func(due time.Time) error {
		if f.fault.Action != fakeservice.ActDelay {
			f.Lateness.Record(due)
		}
		if f.muted {
			return nil
		}
		return write()
	})
}

func (f *hubStream) enqueueMessage(m *message, due time.Time) {
	f.enqueue(due, func() error { return f.writeFaulty(m) })
}

func (f *hubStream) enqueueText(text, kind string) {
	f.enqueue(time.Now(), func() error { return f.writeBlock(text, frame{kind: kind}) })
}

func (h *hub) subscribe(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	if h.IDInHeader {
		id = r.Header.Get("X-Stream")
	}
	topic := h.topicOf(r)
	if topic == nil || id == "" {
		http.Error(w, "the topic is unknown, or the request has no id", http.StatusBadRequest)
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
	if !h.AddHandler() {
		return
	}
	defer h.Handlers.Done()
	f := &hubStream{Stream: h.NewStream(h.Format, w, r), hub: h, client: d}
	f.EndAt, f.EndDelay = until, h.EndDelay
	lastID := r.Header.Get("Last-Event-ID")
	if h.Resume == "query" || h.Resume == "data" {
		lastID = r.URL.Query().Get("since")
	}
	f.run(lastID)
}

// admit records the first request of a client. It returns false if the fault refuses the client.
func (h *hub) admit(id string, topic *hubTopic) (*hubClient, bool) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	n := h.plan.number(id)
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

func (h *hub) join(w http.ResponseWriter, r *http.Request) {
	client := strings.TrimPrefix(r.URL.Path, "/join/")
	h.Mu.Lock()
	secondRequest := h.joins[client]
	delete(h.joins, client)
	h.Mu.Unlock()
	id, _, _ := strings.Cut(client, "~")
	switch {
	case secondRequest == nil:
		http.NotFound(w, r)
	case h.fault.Join != 0 && h.fault.Matches(id):
		h.Mu.Lock()
		if d := h.byID[id]; d != nil {
			d.joinRefused = true
		}
		h.Mu.Unlock()
		w.WriteHeader(h.fault.Join)
	default:
		close(secondRequest)
		time.Sleep(h.ResponseDelay / 2)
		w.WriteHeader(http.StatusAccepted)
	}
}

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

func (f *hubStream) run(lastID string) {
	d := f.client
	if f.HeaderDelay > 0 && d.n >= 0 && len(d.Spans) == 0 {
		f.Mu.Lock()
		delay := time.Duration(f.random.Float64() * float64(f.HeaderDelay))
		f.Mu.Unlock()
		time.Sleep(delay)
	}
	if f.recordAnnouncement(lastID) {
		f.W.Header().Set("X-Gap", "Yes")
	}
	if f.Head() != nil || f.SecondRequest && !f.awaitSecondRequest() {
		return
	}
	f.Mu.Lock()
	f.begin(lastID)
	f.Mu.Unlock()
	if lifetime := f.lifetime(); f.EndAt.IsZero() && lifetime > 0 {
		f.EndAt = time.Now().Add(lifetime)
	}
	if f.Heartbeat != "" && !(f.fault.NoHeartbeats && d.n >= 0) {
		f.Repeat(f.heartbeatDelay, f.heartbeat)
	}
	end := f.Run()
	f.Mu.Lock()
	defer f.Mu.Unlock()
	delete(d.topic.streams, f)
	if d.stream == f {
		d.stream, d.Open = nil, nil
	}
	if end == fakeservice.EndClient && !d.EndRequestedAt.IsZero() && f.EndReason != "" {
		end = fakeservice.EndRequested
	}
	if end == fakeservice.EndInOrder && f.fault.Action == fakeservice.ActReset {
		end = fakeservice.EndReset
	}
	if d.n >= 0 {
		d.Spans[f.span].To, d.Spans[f.span].EndReason = time.Now(), end
	}
	if end == fakeservice.EndReset {
		fakeservice.Reset(f.W)
	}
}

// awaitSecondRequest waits for the second request of the stream. It returns false if the client disconnects first.
func (f *hubStream) awaitSecondRequest() bool {
	secondRequest := make(chan struct{})
	f.Mu.Lock()
	f.joinCount++
	client := fmt.Sprintf("%s~%d", f.client.ID, f.joinCount)
	f.joins[client] = secondRequest
	f.Mu.Unlock()
	if f.Write("event: hello\ndata: {\"you\":{\"id\":\""+client+"\"}}\n\n") != nil {
		return false
	}
	select {
	case <-secondRequest:
		return true
	case <-f.ClientDone:
		return false
	}
}

// begin registers the stream with its topic, and queues the messages that the client missed. If the client's previous
// stream is open, begin ends it. The caller holds the lock.
func (f *hubStream) begin(lastID string) {
	d := f.client
	d.topic.streams[f] = true
	old := d.stream
	d.stream, d.Open = f, f.Stream
	if d.n < 0 {
		return
	}
	if old != nil { // the client left this stream without closing it
		delete(d.topic.streams, old)
		old.Finish(fakeservice.EndClient)
		old.replaced = true
	}
	d.refusals = 0
	f.span = len(d.Spans)
	d.Client.Begin(f.Stream)
	if f.Resume != "none" {
		d.readUpTo(f.span-1, d.topic.resumePoint(f, lastID), f.Delivery != "")
	}
	d.Last().WithID = lastID != ""
	d.Last().Resumed = f.span > 0 && (lastID != "" || f.sendsIDs() && d.receivedOnEarlierStream(f.span).Max > 0)
	if lastID == "" || f.Resume == "none" {
		return
	}
	f.announceGap()
	for _, m := range f.resumedMessages(d.topic.resumeIndex(f, lastID), old != nil) {
		f.enqueueMessage(m, time.Now())
	}
}

// resumeIndex returns the index of the first message for a client that resumes after an id, or 0 for an unknown id. The
// index is lower if the hub repeats messages.
func (t *hubTopic) resumeIndex(f *hubStream, lastID string) int {
	i, ok := t.foreignIDs[lastID]
	for n, m := range t.messages {
		if !ok && lastID == f.resumeID(m) {
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

func (f *hubStream) heartbeat() error {
	if f.muted {
		return nil
	}
	return f.writeBlock(heartbeats[f.Heartbeat].text, frame{kind: frameHeartbeat})
}

func (f *hubStream) heartbeatDelay() time.Duration {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return max(time.Duration((.5+.5*f.random.Float64())*float64(f.HeartbeatInterval)), 10*time.Millisecond)
}

// lifetime returns the lifetime of the stream, or 0 if there is no limit.
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

func (f *hubStream) writeFaulty(m *message) error {
	action, corruption := "", ""
	if f.client.n >= 0 && !f.client.endedByFault && f.fault.matches(f.client.ID, m) {
		action = f.fault.Action
	}
	switch action {
	case hubMuted:
		f.muted = true
		return nil
	case fakeservice.ActClose, fakeservice.ActReset, fakeservice.ActTruncate:
		f.client.endedByFault = true // the fault ends one stream per client
	case hubGap:
		if f.Gap == "event" {
			if err := f.writeBlock("event: reset\ndata: \n\n", frame{kind: frameGap}); err != nil {
				return err
			}
		}
	case corruptNumber, corruptShift, corruptMarker, corruptTime, corruptSum, corruptTruncated:
		corruption = action
	}
	text := func() string { text, _, _ := f.block(m, "", 0); return text }
	return f.Apply(action, f.fault.Wait, text, func() error { return f.writeMessage(m, corruption) })
}

// writeMessage writes a message with a corruption, and records what the client will read.
func (f *hubStream) writeMessage(m *message, corruption string) error {
	text, seq, belongs := f.block(m, corruption, f.fault.Offset)
	kind := frameMessage
	switch {
	case belongs && (m.topic == f.client.topic || !f.HasMarker): // a marker belongs to one topic
	case belongs, corruption == corruptMarker: // the markers of all topics have the same prefix
		kind = frameOtherTopic
	default:
		kind = frameOther
	}
	return f.writeBlock(text, frame{kind: kind, number: m.number, seq: seq, receivedAt: m.receivedAt})
}

func (f *hubStream) writeBlock(text string, fr frame) error {
	fr.at = time.Now()
	f.record(fr)
	return f.Write(text)
}

// record records a frame, unless the client has left the stream for another one.
func (f *hubStream) record(fr frame) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.replaced {
		return
	}
	fr.span = f.span
	f.client.frames = append(f.client.frames, fr)
}
