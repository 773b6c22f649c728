package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// publish stores a message.
func (h *hub) publish(w http.ResponseWriter, r *http.Request) {
	topic := h.topicOf(r)
	l, ok := h.read(r)
	if topic == nil || !ok {
		http.Error(w, "what is that?", http.StatusBadRequest)
		return
	}
	h.Mu.Lock()
	l.topic, l.got = topic, time.Now()
	if h.Skew != 0 {
		l.t = strconv.FormatInt(l.got.UnixMicro(), 10)
	}
	if strings.Contains(l.run, "-trial-") || len(h.byID) == 0 { // the trial of soak before the load
		for f := range topic.streams {
			if f.client.n < 0 {
				f.enqueueMessage(l, l.got)
			}
		}
		h.Mu.Unlock()
		w.WriteHeader(h.Status)
		return
	}
	h.marker = l.run
	l.index = len(topic.messages)
	topic.messages = append(topic.messages, l)
	take := h.fault.publishAction(l)
	slow := time.Duration(h.random.Float64() * float64(h.Slow))
	h.Mu.Unlock()
	delivers := take != publishRefused && take != publishDropped && take != publishHangs && take != publishLost && take != publishStops
	answer := func() { h.answer(w, r, l, take, slow) }
	if h.BeforeAnswer && take == "" {
		answer()
		answer = func() {}
	}
	if delivers {
		h.deliver(l, take)
	}
	answer()
}

// answer responds to a publish request.
func (h *hub) answer(w http.ResponseWriter, r *http.Request, l *message, take string, slow time.Duration) {
	time.Sleep(slow)
	status := h.Status
	switch take {
	case publishRefused, publishRefusedDelivered:
		status = h.fault.Status
	case publishDropped, publishUnanswered:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
		return
	case publishHangs:
		select {
		case <-r.Context().Done():
		case <-h.Stopped:
		}
		return
	}
	h.Mu.Lock()
	l.status, l.answered = status, time.Now()
	h.Mu.Unlock()
	if h.ClosesConnection {
		w.Header().Set("Connection", "close")
	}
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		_, _ = io.WriteString(w, strings.Repeat("so it is ", 20))
	}
	_ = http.NewResponseController(w).Flush()
}

// read returns the message in a publish request.
func (h *hub) read(r *http.Request) (l *message, ok bool) {
	value := func(name string) string { return r.URL.Query().Get(name) }
	switch h.MessageIn {
	case "json":
		var body map[string]any
		in := json.NewDecoder(r.Body)
		in.UseNumber()
		if in.Decode(&body) != nil {
			return nil, false
		}
		value = func(name string) string {
			switch v := body[name].(type) {
			case string:
				return v
			case json.Number:
				return v.String()
			}
			return ""
		}
	case "form":
		if r.ParseForm() != nil {
			return nil, false
		}
		value = r.PostForm.Get
	case "headers":
		value = func(name string) string { return r.Header.Get("X-Soak-" + name) }
	}
	l = &message{run: value("run"), t: value("t"), sum: value("sum")}
	var err error
	l.number, err = strconv.Atoi(value("seq"))
	return l, err == nil
}

// deliver writes a message to the streams of its topic, or of another one.
func (h *hub) deliver(l *message, take string) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	l.delivered = true
	one := -1
	if take == publishLosesOne {
		one = h.random.IntN(max(len(l.topic.streams), 1))
	}
	for f := range l.topic.streams {
		if one--; one == -1 {
			continue
		}
		if h.fault.Action != hubOtherTopic || !h.fault.isMisrouted(l) {
			h.queueMessage(f, l)
		}
	}
	if h.fault.isMisrouted(l) {
		for f := range h.topics[(l.topic.n+1)%len(h.topics)].streams {
			h.queueMessage(f, l)
		}
	}
}

// queueMessage queues a message on a stream, maybe twice if delivery is at-least-once. The caller holds the lock.
func (h *hub) queueMessage(f *hubStream, l *message) {
	if f.client.n < 0 {
		return
	}
	due := time.Now().Add(time.Duration(h.random.Float64() * float64(h.Delay)))
	f.enqueueMessage(l, due)
	if h.Delivery != "" && h.random.IntN(4) == 0 {
		f.enqueueMessage(l, due.Add(time.Duration(h.random.IntN(2))*100*time.Millisecond))
	}
}
