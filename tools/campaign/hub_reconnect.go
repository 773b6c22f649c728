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
