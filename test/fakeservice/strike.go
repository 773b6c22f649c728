package fakeservice

import (
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// Effects of a fault on a message of a stream.
const (
	ActLose        = "lose"
	ActRepeat      = "repeat"
	ActRepeatLater = "repeat later" // the message is repeated after the next one
	ActSwap        = "swap"         // the message is written after the next one
	ActDelay       = "delay"
	ActClose       = "close"    // the stream ends instead
	ActReset       = "reset"    // the connection ends with a TCP RST instead
	ActTruncate    = "truncate" // the stream ends in the middle of the message
)

// Other effects of a fault on a noop.
const (
	ActSkip    = "skip"    // no noop is made for the slot, and no number is used
	ActQuiet   = "quiet"   // a comment is written instead
	ActCorrupt = "corrupt" // the noop has different data
	ActNamed   = "named"   // the noop has a different event name
)

// A Fault changes messages of streams, or prevents the end of streams. The zero value means no fault.
type Fault struct {
	Action    string
	Clients   []string      // affected clients; none: all
	From      int           // number of the first affected message
	Count     int           // number of affected messages; 0: all messages from From on
	Wait      time.Duration // delay of ActDelay
	NeverEnds bool          // streams do not end on request
}

// Matches reports whether the fault affects the streams of a client id.
func (f *Fault) Matches(id string) bool { return len(f.Clients) == 0 || slices.Contains(f.Clients, id) }

// Apply writes a message with the effect of a fault, and then the messages that were delayed until after it. text
// returns the message for ActTruncate.
func (s *Stream) Apply(action string, wait time.Duration, text func() string, write func() error) error {
	switch action {
	case ActLose, ActSkip:
		return nil
	case ActSwap:
		s.delayed = append(s.delayed, write)
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
	err := s.writeDelayed()
	if action == ActRepeatLater {
		s.delayed = append(s.delayed, write)
	}
	return err
}

func (s *Stream) writeDelayed() error {
	for _, write := range s.delayed {
		if err := write(); err != nil {
			return err
		}
	}
	s.delayed = nil
	return nil
}

// Covers reports whether the fault affects the message with the number n.
func (f *Fault) Covers(n int) bool { return n >= f.From && (f.Count == 0 || n < f.From+f.Count) }

// Special values of Fault.From, which is otherwise a number from 1.
const (
	EveryNoop  = 0
	LastNoop   = -1 // the last noop before the client requests the end of the stream
	LastButOne = -2 // the noop before LastNoop
)

// A Strike is a Fault of a Service, with further effects on connects and on the end of streams. The zero value means no
// fault.
type Strike struct {
	Fault
	Hold time.Duration // planned duration of a stream, which determines its last noop

	Status      int           // status of the response to a connect; 200: with a different content type; 0: a stream opens
	Duration    time.Duration // time from the first connect in which Status and HeaderDelay apply; 0: unlimited
	OnReconnect bool          // Status and HeaderDelay apply only to reconnects
	EndIn       time.Duration // minimum age at which the service ends a client's first stream; 0: no end
	Within      time.Duration // maximum random time after EndIn
	HeaderDelay time.Duration // delay of the response headers
}

func (s *Strike) actionFor(c *NoopClient, schedule *Schedule, slot int) string {
	if s.Action == "" || !s.Matches(c.ID) {
		return ""
	}
	f := s.Fault
	if f.From < 0 {
		if f.From += schedule.nextSlot(c.ID, c.First, c.Spans[0].From.Add(s.Hold)); f.From < 2 {
			return ""
		}
	}
	if !f.Covers(slot) {
		return ""
	}
	return f.Action
}

// answers delays a connect by HeaderDelay, and responds with Status unless Status is 0. It returns true if the connect
// must not open a stream.
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
	_, _ = io.WriteString(w, "refused")
	return true
}

// Effects of a proxy in front of the service on a stream.
const (
	ProxyReset    = "reset"    // a TCP reset, between two noops
	ProxyMidFrame = "midframe" // the connection ends within a noop
	ProxyVanish   = "vanish"   // the connection stays open without data
	ProxyPause    = "pause"    // all data is delayed for a while, and then arrives together
	ProxyDribble  = "dribble"  // each byte is sent separately
	ProxyMerge    = "merge"    // several writes become one
)

// proxyFaults maps each effect that starts at a message to the proxy's fault. The other effects apply to all bytes.
var proxyFaults = map[string]faulty.Kind{
	ProxyReset: faulty.ResetAfter, ProxyMidFrame: faulty.Truncate, ProxyVanish: faulty.Vanish, ProxyPause: faulty.Pause,
}

// A ProxySpec describes a proxy in front of the service. The zero value means no proxy.
type ProxySpec struct {
	Action  string
	Clients []string      // affected clients, except for dribble and merge, which affect all
	Noop    int           // noop after which the effect starts, once per client; midframe, pause: noop that is affected
	Delay   time.Duration // reset: delay after the noop; pause: length of the pause
}

// StartProxy starts a proxy that forwards to the service s at address. It records in s the losses that the proxy
// causes.
func StartProxy(spec ProxySpec, address string, s *Service) (*faulty.Proxy, error) {
	o := faulty.Options{
		Marker: "data:", ByteByByte: spec.Action == ProxyDribble, Merged: spec.Action == ProxyMerge, OnAction: s.recordProxy,
	}
	if kind, ok := proxyFaults[spec.Action]; ok {
		for _, id := range spec.Clients {
			o.Faults = append(o.Faults, faulty.Fault{Kind: kind, Client: id, Message: spec.Noop, Wait: spec.Delay, Once: true})
		}
	}
	return faulty.Start("http://"+address, o)
}

func (s *Service) recordProxy(action faulty.Action) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	c := s.client(action.Client)
	switch action.Fault {
	case faulty.ResetAfter:
		c.disconnectedAt = action.At
	case faulty.Truncate:
		c.cutAfter(action.Message - 1)
		c.disconnectedAt = action.At
	case faulty.Vanish:
		c.cutAfter(action.Message)
	}
}
