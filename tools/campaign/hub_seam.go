package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// Effects of a fault on the replay of the messages that a client missed.
const (
	seamLosesFirst  = "lose first"  // the first message is missing
	seamLosesLast   = "lose last"   // the last message is missing
	seamSkipsTwo    = "skip two"    // the first two messages are missing
	seamLosesAll    = "lose all"    // all messages are missing
	seamAnnounced   = "announce"    // all messages are missing, and the gap is announced
	seamRepeatsLast = "repeat last" // the last message is repeated
	seamSwapsFirst  = "swap first"  // the first two messages are swapped
	seamReplaysAll  = "replay all"  // all messages published to the topic are sent
)

// seam returns the effect of the fault on a stream that resumes, or "" for none. vanished reports whether the client
// left the previous stream without closing it.
func (f *hubFault) seam(id string, vanished bool) string {
	if !f.Matches(id) || f.StreamsOf != "" && (f.StreamsOf == "half") != vanished {
		return ""
	}
	return f.Seam
}

// resumedMessages returns the messages to replay from a position, and records the omitted ones. The caller holds Mu.
func (f *hubStream) resumedMessages(position int, vanished bool) []*message {
	delivered := func(messages []*message) []*message {
		return slices.DeleteFunc(slices.Clone(messages), func(m *message) bool { return !m.delivered })
	}
	d := f.client
	missed := delivered(d.topic.messages[position:])
	messages := slices.Clone(missed)
	switch n := len(missed); f.fault.seam(d.ID, vanished) {
	case seamLosesFirst:
		messages = messages[min(1, n):]
	case seamLosesLast:
		messages = messages[:max(n-1, 0)]
	case seamSkipsTwo:
		messages = messages[min(2, n):]
	case seamLosesAll, seamAnnounced:
		messages = nil
	case seamRepeatsLast:
		messages = append(messages, messages[max(n-1, 0):]...)
	case seamSwapsFirst:
		if n > 1 {
			messages[0], messages[1] = messages[1], messages[0]
		}
	case seamReplaysAll:
		messages = delivered(d.topic.messages)
	}
	for _, m := range missed {
		if !slices.Contains(messages, m) {
			if d.dropped == nil {
				d.dropped = map[int]int{}
			}
			d.dropped[m.number] = f.span
		}
	}
	return messages
}

// recordAnnouncement records whether the stream announces missing messages, and reports whether a header does so.
func (f *hubStream) recordAnnouncement(lastID string) bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	d := f.client
	byHeader := f.Gap == "header"
	withoutLoss := byHeader && f.fault.Action == hubGap && f.fault.Matches(d.ID)
	resumes := lastID != "" && d.n >= 0 && f.Gap != ""
	f.announcesGap = resumes && (withoutLoss || f.fault.seam(d.ID, d.stream != nil) == seamAnnounced)
	return f.announcesGap && byHeader
}

// announceGap announces missing messages if announcesGap is set. If a header has announced them, it only records the
// announcement. The caller holds Mu.
func (f *hubStream) announceGap() {
	switch {
	case !f.announcesGap:
	case f.Gap == "header":
		f.client.frames = append(f.client.frames, frame{kind: frameGap, at: time.Now(), span: f.span})
	default:
		f.enqueueText("event: reset\ndata: \n\n", frameGap)
	}
}

// resumeID returns the id from which a client resumes after a message.
func (f *hubStream) resumeID(m *message) string {
	if f.Resume == "data" {
		return fmt.Sprintf("n%d", m.index)
	}
	return f.idOf(m, fmt.Sprint(m.number))
}

// resumePoint returns the number of the message after which a client that sends lastID resumes. It returns 0 if that
// message is unknown, and -1 if the client had not read any message.
func (t *hubTopic) resumePoint(f *hubStream, lastID string) int {
	switch {
	case f.Resume != "data" && (f.IDs == idsConstant || f.IDs == idsNone):
		return 0
	case lastID == "" && f.resumesByID() && f.Heartbeat == "after a line": // a heartbeat may have reset the id
		return 0
	case lastID == "":
		return -1
	}
	for _, m := range t.messages {
		if f.resumeID(m) == lastID {
			return m.number
		}
	}
	return 0
}

// readUpTo records the last message that a reconnecting client had read on the stream with the index span. number is
// the number of that message (-1: it read none; 0: unknown, which changes nothing). With repeated, the client may have
// read only an earlier copy of the message.
func (d *hubClient) readUpTo(span, number int, repeated bool) {
	if span < 0 || number == 0 || d.Spans[span].EndReason == fakeservice.EndInOrder {
		return
	}
	last := -1
	for i := range d.frames {
		f := &d.frames[i]
		f.uncertain = f.uncertain || repeated && last >= 0 && f.span == span
		if f.kind == frameMessage && f.number == number {
			last = i
		}
	}
	read := d.frames[:last+1]
	for _, f := range d.frames[last+1:] {
		if f.kind != frameMessage || f.span < span {
			f.uncertain = f.uncertain || f.span == span
			read = append(read, f)
		}
	}
	d.frames = read
	d.Spans[span].Reported = true
}

// tokens contains the token functions of a description. A token contains its expiry in milliseconds since 1970.
var tokens = map[string]string{
	"fresh": "(ttl = 60) => `until-${Date.now() + ttl * 1000}-x`",
	"once":  "(ttl = 60) => first ??= `until-${Date.now() + ttl * 1000}-x`",
	"fails": "(ttl = 60) => { first ??= Date.now(); if (Date.now() - first > 2500) throw new Error('no login'); return `until-${Date.now() + ttl * 1000}-x`; }",
}

// readToken returns when the token of a stream expires, or zero if the hub does not check the client's tokens. ok is
// false if readToken refused the client, because the token is invalid, expired or rejected by the fault.
func (h *hub) readToken(w http.ResponseWriter, r *http.Request, id string) (until time.Time, ok bool) {
	if h.TTL == 0 || h.plan.number(id) < 0 {
		return time.Time{}, true
	}
	token := strings.TrimSuffix(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer until-"), "-x")
	ms, err := strconv.ParseInt(token, 10, 64)
	until = time.UnixMilli(ms)
	h.Mu.Lock()
	defer h.Mu.Unlock()
	d := h.byID[id]
	reconnected := d != nil && len(d.Spans) > 0
	if err != nil || time.Until(until) <= 0 || reconnected && h.fault.TokenRefused && h.fault.Matches(id) {
		w.WriteHeader(http.StatusUnauthorized)
		return until, false
	}
	return until, true
}

// refuseReconnect reports whether it refused a client, because of the fault or because the hub is down. The fault may
// also delay the client without refusing it.
func (h *hub) refuseReconnect(w http.ResponseWriter, d *hubClient) bool {
	h.Mu.Lock()
	isAffected := d.n >= 0 && h.fault.Reconnect != "" && h.fault.Matches(d.ID) && len(d.Spans) > 0 && (h.fault.Reconnects == 0 || d.refusals < h.fault.Reconnects)
	d.refusals += btoi(isAffected)
	isDown := d.n >= 0 && time.Now().Before(h.downUntil)
	h.Mu.Unlock()
	switch {
	case isDown:
		w.WriteHeader(http.StatusServiceUnavailable)
	case !isAffected:
		return false
	case h.fault.Reconnect == "slow":
		time.Sleep(h.fault.Wait)
		return false
	case h.fault.Reconnect == "reset":
		fakeservice.Reset(w)
	default:
		status, _ := strconv.Atoi(h.fault.Reconnect)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
	}
	return true
}

// restartFile is the file that an action creates in the folder of the run to restart the hub.
const restartFile = "restart"

// restartHub returns a disturbance that ends all streams at the action, and makes the hub refuse clients for a time.
func restartHub(down time.Duration) func(context.Context, *run, int) {
	return func(ctx context.Context, r *run, _ int) {
		if !await(ctx, func() bool { _, err := os.Stat(filepath.Join(r.dir, restartFile)); return err == nil }) {
			return
		}
		h := r.hub
		h.Mu.Lock()
		defer h.Mu.Unlock()
		h.downUntil = time.Now().Add(down)
		for _, d := range h.byID {
			if d.Open != nil {
				d.Open.Finish(fakeservice.EndInOrder)
			}
		}
	}
}

// resumesByID reports whether the description makes streams resume after the last value of the id field.
func (h *hubSpec) resumesByID() bool { return h.Resume == "header" || h.Resume == "query" }

// sendsIDs reports whether messages carry ids from which a stream can resume.
func (h *hubSpec) sendsIDs() bool { return h.resumesByID() && (h.IDs != idsNone || h.Form == formID) }

// receivedOnEarlierStream returns 1 if the client read a message on a stream before the given one, and 0 otherwise. If
// the client may not have read the message, it allows both.
func (d *hubClient) receivedOnEarlierStream(before int) (arrived span) {
	for _, f := range d.frames {
		if f.kind == frameMessage && f.span < before {
			arrived.Max = 1
			arrived.Min = max(arrived.Min, btoi(mustHaveRead(d.Spans[f.span], f.at)))
		}
	}
	return arrived
}

// expectIDs counts the reconnects of a client that had received a message but had no id to resume from.
func (sc *scenario) expectIDs(d *hubClient, c counts) {
	name := "no ids"
	if sc.Hub.sendsIDs() {
		name = "id resets"
	}
	for i, s := range d.Spans {
		if i == 0 || s.WithID || !sc.Hub.resumesByID() {
			continue
		}
		one := d.receivedOnEarlierStream(i)
		if i == len(d.Spans)-1 && s.To.Sub(s.From) < hubSlack {
			one.Min = 0 // the run may have ended before the client counted the reconnect
		}
		c.add(name, one)
	}
}
