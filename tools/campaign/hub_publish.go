package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

func (h *hub) publish(w http.ResponseWriter, r *http.Request) {
	topic := h.topicOf(r)
	m, ok := h.read(r)
	if topic == nil || !ok {
		http.Error(w, "the topic is unknown, or the request has no valid message", http.StatusBadRequest)
		return
	}
	h.Mu.Lock()
	m.topic, m.receivedAt = topic, time.Now()
	if h.Skew != 0 {
		m.t = strconv.FormatInt(m.receivedAt.UnixMicro(), 10)
	}
	if strings.Contains(m.run, "-trial-") || len(h.byID) == 0 { // a trial of soak before the run
		for f := range topic.streams {
			if f.client.n < 0 {
				f.enqueueMessage(m, m.receivedAt)
			}
		}
		h.Mu.Unlock()
		w.WriteHeader(h.Status)
		return
	}
	h.marker = m.run
	m.index = len(topic.messages)
	topic.messages = append(topic.messages, m)
	effect := h.fault.publishAction(m)
	delay := time.Duration(h.random.Float64() * float64(h.ResponseDelay))
	h.Mu.Unlock()
	delivers := effect != publishRefused && effect != publishDropped && effect != publishHangs && effect != publishUndelivered && effect != publishStopsDelivery
	answer := func() { h.answer(w, r, m, effect, delay) }
	if h.RespondsFirst && effect == "" {
		answer()
		answer = func() {}
	}
	if delivers {
		h.deliver(m, effect)
	}
	answer()
}

func (h *hub) answer(w http.ResponseWriter, r *http.Request, m *message, effect string, delay time.Duration) {
	time.Sleep(delay)
	status := h.Status
	switch effect {
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
	m.status, m.answeredAt = status, time.Now()
	h.Mu.Unlock()
	if h.ClosesConnection {
		w.Header().Set("Connection", "close")
	}
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		_, _ = io.WriteString(w, strings.Repeat("accepted ", 20))
	}
	_ = http.NewResponseController(w).Flush()
}

func (h *hub) read(r *http.Request) (m *message, ok bool) {
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
	m = &message{run: value("run"), t: value("t"), sum: value("sum")}
	var err error
	m.number, err = strconv.Atoi(value("seq"))
	return m, err == nil
}

// deliver queues a message on the streams of its topic. A fault may add or substitute the streams of the next topic, or
// omit a random stream.
func (h *hub) deliver(m *message, effect string) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	m.delivered = true
	skip := -1 // index of the stream that does not receive the message; -1: none
	if effect == publishLosesOne {
		skip = h.random.IntN(max(len(m.topic.streams), 1))
	}
	for f := range m.topic.streams {
		if skip--; skip == -1 {
			continue
		}
		if h.fault.Action != hubOtherTopic || !h.fault.isMisrouted(m) {
			h.queueMessage(f, m)
		}
	}
	if h.fault.isMisrouted(m) {
		for f := range h.topics[(m.topic.n+1)%len(h.topics)].streams {
			h.queueMessage(f, m)
		}
	}
}

// queueMessage queues a message, sometimes twice if delivery is at-least-once. The caller holds the lock.
func (h *hub) queueMessage(f *hubStream, m *message) {
	if f.client.n < 0 {
		return
	}
	due := time.Now().Add(time.Duration(h.random.Float64() * float64(h.Delay)))
	f.enqueueMessage(m, due)
	if h.Delivery != "" && h.random.IntN(4) == 0 {
		f.enqueueMessage(m, due.Add(time.Duration(h.random.IntN(2))*100*time.Millisecond))
	}
}
