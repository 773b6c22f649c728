package fakeservice

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Effects of a fault on a message of a stream.
const (
	ActLose     = "lose"
	ActRepeat   = "repeat"
	ActAgain    = "again" // repeated after the next one
	ActHold     = "hold"  // until the next one is written
	ActDelay    = "delay"
	ActClose    = "close"    // the stream ends instead
	ActReset    = "reset"    // likewise, with a TCP RST
	ActTruncate = "truncate" // it ends in the middle of the message
)

// Other effects of a fault on a noop.
const (
	ActSkip    = "skip"  // no noop for the slot, and no number used
	ActQuiet   = "quiet" // a comment is written instead
	ActCorrupt = "corrupt"
	ActNamed   = "named" // it gets another event name
)

// A Fault changes messages of some streams. The zero value does nothing.
type Fault struct {
	Action    string
	Devices   []string // none: all
	From      int      // number of the first message
	Count     int      // number of messages; 0: all that follow
	Wait      time.Duration
	NeverEnds bool // streams do not end when that is requested
}

// Matches reports whether the fault concerns the streams of that id.
func (f *Fault) Matches(id string) bool { return len(f.Devices) == 0 || slices.Contains(f.Devices, id) }

// Apply writes a message with the effect of a fault, and then the messages that were to follow it.
func (s *Stream) Apply(action string, wait time.Duration, text func() string, write func() error) error {
	switch action {
	case ActLose, ActSkip:
		return nil
	case ActHold:
		s.held = append(s.held, write)
		return nil
	case ActDelay:
		if err := s.pause(time.Now().Add(wait)); err != nil {
			return err
		}
	case ActClose, ActReset:
		return ErrOver
	case ActTruncate:
		part := text()
		_ = s.Write(part[:len(part)/2])
		return ErrOver
	case ActRepeat:
		if err := write(); err != nil {
			return err
		}
	}
	if err := write(); err != nil {
		return err
	}
	err := s.release()
	if action == ActAgain {
		s.held = append(s.held, write)
	}
	return err
}

// release writes the messages that were held.
func (s *Stream) release() error {
	for _, write := range s.held {
		if err := write(); err != nil {
			return err
		}
	}
	s.held = nil
	return nil
}

// Covers reports whether the fault concerns the message with that number.
func (f *Fault) Covers(n int) bool { return n >= f.From && (f.Count == 0 || n < f.From+f.Count) }

// Special values of Fault.From, which is otherwise a number from 1.
const (
	EveryNoop  = 0
	LastNoop   = -1 // before the end is requested
	LastButOne = -2
)

// A Strike is a fault of the service. The zero value is none.
type Strike struct {
	Fault
	Hold time.Duration // how long a stream will be open, to know its last noop

	Status      int           // answer to a connect; 200: of another content type
	Duration    time.Duration // after the start; 0: unlimited
	OnReconnect bool          // the Status is for clients that reconnect
	EndIn       time.Duration // the first stream ends then, or up to Within later
	Within      time.Duration
	HeaderDelay time.Duration // delay of the headers
}

// actionFor returns the action for the noop of a slot of a device, "" for none.
func (s *Strike) actionFor(d *Device, schedule *Schedule, slot int) string {
	if s.Action == "" || !s.Matches(d.ID) {
		return ""
	}
	f := s.Fault
	if f.From < 0 {
		if f.From += schedule.next(d.ID, d.First, d.Spans[0].From.Add(s.Hold)); f.From < 2 {
			return ""
		}
	}
	if !f.Covers(slot) {
		return ""
	}
	return f.Action
}

// answers reports whether the fault answered the request in place of a stream.
func (s *Strike) answers(w http.ResponseWriter, r *http.Request, id string, first bool, since time.Duration) bool {
	if !s.Matches(id) || s.Duration > 0 && since > s.Duration || s.OnReconnect && first {
		return false
	}
	select {
	case <-time.After(s.HeaderDelay):
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
