package main

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// What a fault does with a message on a stream.
const (
	actLose     = "lose"
	actRepeat   = "repeat"
	actHold     = "hold" // until the next one is written
	actDelay    = "delay"
	actClose    = "close"    // the stream ends instead
	actReset    = "reset"    // likewise, with a TCP RST
	actTruncate = "truncate" // it ends in the middle of the message
)

// Other effects of a fault on a noop.
const (
	actSkip    = "skip"  // no noop is made for the slot, and no number taken
	actQuiet   = "quiet" // a comment is written instead
	actCorrupt = "corrupt"
	actNamed   = "named" // it gets another event name
)

// A fault is what goes wrong with messages of some streams. The zero value does nothing.
type fault struct {
	Action  string
	Devices []string // none: all
	From    int      // number of the first message
	Count   int      // number of messages; 0: all that follow
	Wait    time.Duration
	Never   bool // streams do not end when that is requested
}

// meant reports whether the fault concerns the streams of that id.
func (f *fault) meant(id string) bool { return len(f.Devices) == 0 || slices.Contains(f.Devices, id) }

// Values of strike.From other than a number from 1.
const (
	everyNoop  = 0
	lastNoop   = -1 // before the end is asked for
	lastButOne = -2
)

// A strike is a fault of the service. The zero value is none.
type strike struct {
	fault
	Hold time.Duration // how long a stream will be open, to know its last noop

	Status  int           // answer to a connect; 200: of another content type
	Until   time.Duration // after the start; 0: for ever
	Again   bool          // the Status is for clients that reconnect
	EndIn   time.Duration // the first stream ends then, or up to Within later
	Within  time.Duration
	Headers time.Duration // how late the headers come
}

// at is what to do with the noop of a slot of a device, "" for nothing.
func (s *strike) at(d *device, schedule *schedule, slot int) string {
	if s.Action == "" || !s.meant(d.id) {
		return ""
	}
	from := s.From
	if from < 0 {
		if from += schedule.next(d.id, d.first, d.spans[0].from.Add(s.Hold)); from < 2 {
			return ""
		}
	}
	if slot < from || s.Count > 0 && slot >= from+s.Count {
		return ""
	}
	return s.Action
}

// answers gives another answer than a stream.
func (s *strike) answers(w http.ResponseWriter, r *http.Request, id string, first bool, since time.Duration) bool {
	if !s.meant(id) || s.Until > 0 && since > s.Until || s.Again && first {
		return false
	}
	select {
	case <-time.After(s.Headers):
	case <-r.Context().Done():
		return true
	}
	switch s.Status {
	case 0:
		return false
	case http.StatusOK:
		w.Header().Set("Content-Type", "text/html")
	}
	w.WriteHeader(s.Status)
	_, _ = w.Write([]byte(strings.Repeat("no ", 3)))
	return true
}
