package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// tokens are the ways in which a description comes by a token: when it is over, in milliseconds since 1970.
var tokens = map[string]string{
	"anew":  "(ttl = 60) => `until-${Date.now() + ttl * 1000}-x`",
	"once":  "(ttl = 60) => first ??= `until-${Date.now() + ttl * 1000}-x`",
	"fails": "(ttl = 60) => { first ??= Date.now(); if (Date.now() - first > 2500) throw new Error('no login'); return `until-${Date.now() + ttl * 1000}-x`; }",
}

// tokenOf is when the token of a stream is over, zero where it has none. One that is over, or that the fault does not like,
// is refused.
func (h *hub) tokenOf(w http.ResponseWriter, r *http.Request, id string) (until time.Time, ok bool) {
	if h.TTL == 0 || h.number(id) < 0 {
		return time.Time{}, true
	}
	token := strings.TrimSuffix(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer until-"), "-x")
	ms, err := strconv.ParseInt(token, 10, 64)
	until = time.UnixMilli(ms)
	h.Mu.Lock()
	defer h.Mu.Unlock()
	d := h.byID[id]
	again := d != nil && len(d.Spans) > 0
	if err != nil || time.Until(until) <= 0 || again && h.fault.Stale && h.fault.Meant(id) {
		w.WriteHeader(http.StatusUnauthorized)
		return until, false
	}
	return until, true
}

// turnsAway answers a client that reconnects according to the fault; false: it gets its stream, maybe later.
func (h *hub) turnsAway(w http.ResponseWriter, d *listener) bool {
	h.Mu.Lock()
	turned := d.n >= 0 && h.fault.Turn != "" && h.fault.Meant(d.ID) && len(d.Spans) > 0 && (h.fault.Turns == 0 || d.turned < h.fault.Turns)
	d.turned += btoi(turned)
	down := d.n >= 0 && time.Now().Before(h.down)
	h.Mu.Unlock()
	switch {
	case down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case !turned:
		return false
	case h.fault.Turn == "slow":
		time.Sleep(h.fault.Wait)
		return false
	case h.fault.Turn == "reset":
		fakeservice.Reset(w)
	default:
		status, _ := strconv.Atoi(h.fault.Turn)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
	}
	return true
}

// restartFile is what an action makes in the folder of the run to have the hub restart.
const restartFile = "restart"

// restarted ends all streams on request of the action, and accepts no client for the given time.
func restarted(down time.Duration) func(context.Context, *run, int) {
	return func(ctx context.Context, r *run, _ int) {
		if !await(ctx, func() bool { _, err := os.Stat(filepath.Join(r.dir, restartFile)); return err == nil }) {
			return
		}
		h := r.hub
		h.Mu.Lock()
		defer h.Mu.Unlock()
		h.down = time.Now().Add(down)
		for _, d := range h.byID {
			if d.Present != nil {
				d.Present.Finish(fakeservice.EndInOrder)
			}
		}
	}
}

// resumesByID reports whether streams resume after the last value of the field id, by the description.
func (h *hubSpec) resumesByID() bool { return h.Resume == "header" || h.Resume == "query" }

// sendsIDs reports whether messages carry such ids.
func (h *hubSpec) sendsIDs() bool { return h.resumesByID() && (h.IDs != hubNone || h.Form == formID) }

// received reports whether the client received a message on an earlier stream.
func (d *listener) received(before int) (came span) {
	for _, f := range d.frames {
		if f.kind == frameMessage && f.span < before {
			came.Max = 1
			came.Min = max(came.Min, btoi(sure(d.Spans[f.span], f.at)))
		}
	}
	return came
}

// expectIDs counts the reconnects of clients that had received messages but had no id to resume from.
func (sc *scenario) expectIDs(d *listener, c counts) {
	name := "no ids"
	if sc.Hub.sendsIDs() {
		name = "id resets"
	}
	for i, s := range d.Spans {
		if i == 0 || s.WithID || !sc.Hub.resumesByID() {
			continue
		}
		one := d.received(i)
		if i == len(d.Spans)-1 && s.To.Sub(s.From) < hubSlack { // its client may have left before it knew of it
			one.Min = 0
		}
		c.add(name, one)
	}
}
