package ledger

import (
	"slices"
	"time"
)

// A Cut is a disconnect or a pause with which the client tests whether streams resume, and its effects. Package plan
// defines the kinds.
type Cut struct {
	Kind       string  `json:"kind"`
	At         Instant `json:"at_ns"`
	LastNumber uint64  `json:"last_number,omitempty"` // highest number that had arrived
	// Lost reports whether the stream ended. A pause ends a stream only if the service closes it.
	Lost bool `json:"lost,omitempty"`
	// ReconnectedAt is the time when the next stream opened, or when the pause ended. It is 0 if neither happened.
	ReconnectedAt   Instant `json:"reconnected_ns,omitempty"`
	ResumeRequested bool    `json:"resume_requested,omitempty"`
	// NextAt is the arrival time of the next message, and Next is its number. Both are 0 if no message arrived.
	NextAt Instant `json:"next_ns,omitempty"`
	Next   uint64  `json:"next,omitempty"`

	Filled     uint64 `json:"filled,omitempty"`     // messages with numbers between LastNumber and Next, which arrived later
	Duplicated uint64 `json:"duplicated,omitempty"` // messages that arrived twice
	Repeated   uint64 `json:"repeated,omitempty"`   // messages that arrived twice, if the service may repeat messages
	Announced  uint64 `json:"announced,omitempty"`  // announcements of the service that messages are missing
	// GapEnd is the number of the first new message after the last announcement, or 0 if none arrived.
	GapEnd uint64 `json:"gap_end,omitempty"`
}

// Interruption returns the time from the cut to the next message. ok is false if no message arrived.
func (c *Cut) Interruption() (d time.Duration, ok bool) { return c.NextAt - c.At, c.NextAt > 0 }

// pauseGrace is the time after a pause in which the end of a stream counts as an end during the pause. The client
// detects such an end late, because it first reads the messages that arrived before the end.
const pauseGrace = time.Second

// Cuts are the disconnects and pauses of one client.
type Cuts struct {
	List     []Cut  `json:"list"`
	Unlisted uint64 `json:"unlisted,omitempty"` // number of cuts beyond maxCuts
}

const maxCuts = 1000

// resumeTime is the time after a reconnect in which repeated messages and announced gaps are attributed to the resume.
// Repeated messages up to Cut.LastNumber are attributed to the resume at any time.
const resumeTime = 5 * time.Second

// cuts contains the Cuts of a client, and the state of the latest one.
type cuts struct {
	Cuts
	received bool    // a message arrived on this stream since the last pause
	pausing  bool    // a pause is in progress
	paused   bool    // the latest cut is a pause
	pausedAt Instant // start of the pause
	readAt   Instant // end of the pause
}

// openUntil returns the last instant at which a stream was certainly open, given the instant at which the client
// detected its end. A stream that ended during a pause may have ended at the start of the pause.
func (c *cuts) openUntil(at Instant) Instant {
	if c != nil && c.paused && (c.pausing || at-c.readAt <= pauseGrace) {
		return min(at, c.pausedAt)
	}
	return at
}

// pauseBetween returns how much of the latest pause lies between two instants. It returns 0 while that pause is in
// progress.
func (c *cuts) pauseBetween(from, to Instant) time.Duration {
	if c == nil {
		return 0
	}
	return max(min(to, c.readAt)-max(from, c.pausedAt), 0)
}

func (c *cuts) latest() *Cut {
	if c == nil || len(c.List) == 0 || c.Unlisted > 0 {
		return nil
	}
	return &c.List[len(c.List)-1]
}

// Clone returns a copy, or nil if c is nil.
func (c *Cuts) Clone() *Cuts {
	if c == nil {
		return nil
	}
	return &Cuts{slices.Clone(c.List), c.Unlisted}
}

// removeNumbers removes everything that depends on the numbers of messages, because the ids are not numbers of messages.
func (c *Cuts) removeNumbers() {
	for i := range c.List {
		cut := &c.List[i]
		cut.LastNumber, cut.Next, cut.Filled, cut.Duplicated, cut.ResumeRequested = 0, 0, 0, 0, false
	}
}

// CountCopies adds a number of copies, which may be negative, to the last cut before an instant. It ignores copies that
// arrived more than resumeTime after the reconnect. c may be nil.
func (c *Cuts) CountCopies(at Instant, count int) {
	if c == nil {
		return
	}
	i := len(c.List) - 1
	for i >= 0 && c.List[i].At > at {
		i--
	}
	if i >= 0 && c.List[i].ReconnectedAt > 0 && at-c.List[i].ReconnectedAt <= resumeTime {
		c.List[i].Duplicated = uint64(max(int(c.List[i].Duplicated)+count, 0)) // #nosec G115 -- small
	}
}

// CanCut reports whether a message has arrived on the open stream since the last pause, and no end is requested. It
// returns false during a pause, and without Config.Cuts.
func (l *Ledger) CanCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stream.cuts != nil && l.stream.open && l.stream.closeRequestedAt == 0 && l.stream.cuts.received && !l.stream.cuts.pausing
}

// Cut records a disconnect or a pause by the client. The caller must call Closed after a disconnect. A pause ends with
// PauseOver, or when the service ends the stream.
func (l *Ledger) Cut(at Instant, kind string, pause bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream.cuts == nil {
		return
	}
	l.stream.cuts.received, l.stream.cuts.pausing, l.stream.cuts.paused = false, pause, pause
	if pause {
		l.stream.cuts.pausedAt = at
		l.endSilence(at)
	}
	if len(l.stream.cuts.List) >= maxCuts {
		l.stream.cuts.Unlisted++
		return
	}
	l.stream.cuts.List = append(l.stream.cuts.List, Cut{Kind: kind, At: at, LastNumber: l.highest()})
}

// PauseOver records the end of a pause.
func (l *Ledger) PauseOver(at Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream.cuts == nil {
		return
	}
	l.stream.cuts.pausing, l.stream.cuts.received, l.stream.cuts.readAt = false, false, at
	l.silences.lastSignAt = at // the pause does not count as silence
	if c := l.stream.cuts.latest(); c != nil && c.ReconnectedAt == 0 {
		c.ReconnectedAt = at
	}
}

func (l *Ledger) highest() uint64 {
	switch {
	case l.messages != nil:
		return l.messages.numbers.highest
	case l.byNumber != nil:
		return l.byNumber.numbers.highest
	}
	return 0
}

// cutLost records the end of a stream for the last cut, if that end is an effect of the cut: the client disconnected,
// the service closed the stream during or right after the pause, or a stream ended before the next message.
func (l *Ledger) cutLost(at Instant) {
	if l.stream.cuts == nil {
		return
	}
	c := l.stream.cuts.latest()
	switch {
	case c == nil:
	case c.ReconnectedAt == 0, c.NextAt == 0:
		c.Lost, c.ReconnectedAt = true, 0
	case l.stream.cuts.paused && !c.Lost && at-c.ReconnectedAt <= pauseGrace:
		c.LastNumber, c.Lost, c.ReconnectedAt, c.NextAt, c.Next = l.highest(), true, 0, 0, 0
	}
	l.stream.cuts.pausing, l.stream.cuts.received = false, false
}

func (l *Ledger) cutOpened(at Instant) {
	if l.stream.cuts == nil {
		return
	}
	l.stream.cuts.received = false
	if c := l.stream.cuts.latest(); c != nil && c.Lost && c.ReconnectedAt == 0 {
		c.ReconnectedAt = at
		c.ResumeRequested = l.byNumber != nil && l.highest() > 0 // for noops; cutResumed sets it for numbered messages
	}
}

func (l *Ledger) cutResumed() {
	if c := l.stream.cuts.latest(); c != nil && c.Lost && c.ReconnectedAt > 0 && c.NextAt == 0 {
		c.ResumeRequested = true
	}
}

// cutAnnounced records that the service announced missing messages. It may be called before or after cutOpened.
func (l *Ledger) cutAnnounced(at Instant) {
	if c := l.stream.cuts.latest(); c != nil && (c.ReconnectedAt == 0 || at-c.ReconnectedAt <= resumeTime) {
		c.Announced++
		c.GapEnd = 0
	}
}

// cutMessage records a message for the last cut: the first message after it, or a message that the resume repeated. A
// message that arrives out of order may belong to an earlier cut.
func (l *Ledger) cutMessage(at Instant, number uint64, delta *Delta) {
	if l.stream.cuts == nil {
		return
	}
	if delta.filled {
		l.stream.cuts.fill(number)
	}
	l.stream.cuts.received = true
	c := l.stream.cuts.latest()
	if c == nil || c.ReconnectedAt == 0 {
		return
	}
	if c.NextAt == 0 {
		c.NextAt, c.Next = at, number
	}
	if c.Announced > 0 && c.GapEnd == 0 && number > c.LastNumber {
		c.GapEnd = number
	}
	if number > c.LastNumber && at-c.ReconnectedAt > resumeTime {
		return
	}
	if delta.duplicated {
		c.Duplicated++
	}
	if delta.repeated {
		c.Repeated++
	}
}

// fill records the arrival of a message whose number was skipped at a cut.
func (c *Cuts) fill(number uint64) {
	for i := range c.List {
		if cut := &c.List[i]; cut.LastNumber < number && number < cut.Next {
			cut.Filled++
		}
	}
}
