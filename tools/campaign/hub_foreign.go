package main

import (
	"strconv"
	"strings"
	"time"
)

// writeForeign writes blocks of other publishers to the streams of the run until the hub stops.
func (h *hub) writeForeign() {
	if len(h.Foreign) == 0 {
		return
	}
	for n := 0; ; n++ {
		select {
		case <-h.Stopped:
			return
		case <-time.After(time.Duration(60+h.plan.Connections*4) * time.Millisecond):
		}
		h.Mu.Lock()
		text, kind := h.foreignBlock(h.Foreign[n%len(h.Foreign)], n)
		topic := h.topics[n%len(h.topics)]
		if _, fields, ok := strings.Cut(text, "id: "); ok && !strings.HasPrefix(text, "data") {
			id, _, _ := strings.Cut(fields, "\n")
			topic.foreignIDs[id] = len(topic.messages)
		}
		for f := range topic.streams {
			if text != "" && f.client.n >= 0 {
				f.enqueueText(text, kind)
			}
		}
		h.Mu.Unlock()
	}
}

// foreignBlock returns one block of another publisher, and the kind of frame to record for it. Before the first message
// of the run, it returns "" for the variants that are messages with a marker.
func (h *hub) foreignBlock(variant string, n int) (text, kind string) {
	m := &message{run: "t-0ther1", number: n + 1, index: 100_000 + n, t: strconv.FormatInt(time.Now().UnixMicro(), 10)}
	if h.Form == formID { // foreign ids must differ from the ids of the run
		m.number += 100_000
	}
	switch variant {
	case "comment":
		kind = frameOther
		if k := heartbeats[h.Heartbeat]; k.described["comment"] == true {
			kind = frameHeartbeat
		}
		return ": nothing but a comment\n\n", kind
	case "retry":
		return "retry: " + strconv.Itoa(max(h.Retry, 50)) + "\n\n", frameOther
	case "event":
		return h.event("none-of-these", "", h.data(h.marker, "3", m.t, "00000000", m)), frameOther
	case "text":
		return h.event(h.eventOf(m), "", "hello, how are you?"), frameOther
	case "broken":
		return h.event(h.eventOf(m), "", `{"run":"t-0ther1","seq":4,`), frameOther
	case "large":
		return h.event(h.eventOf(m), "", `{"text":"`+strings.Repeat("0123456789", 6000)+`"}`), frameOther
	}
	prefix, _, ok := strings.Cut(h.marker, ".") // the part that is the same for all topics
	if !ok {
		return "", ""
	}
	switch variant {
	case "longer marker":
		m.run = prefix + "-trial-a0b1c2"
	case "shorter marker":
		m.run = prefix
	}
	if variant != "run" && h.HasChecksum {
		m.sum = sumOf(m.run, m.number, m.t)
	}
	text, _, _ = h.block(m, "", 0)
	return text, frameForeign
}
