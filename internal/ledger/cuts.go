package ledger

import (
	"slices"
	"time"
)

// A Cut is one time at which the client itself cut its stream, and what came of it. Package plan names the kinds.
type Cut struct {
	Kind   string  `json:"kind"`
	At     Instant `json:"at_ns"`
	Behind uint64  `json:"behind,omitempty"` // the highest number that had come
	// Lost: the stream ended. Of a pause only the service ends it.
	Lost bool `json:"lost,omitempty"`
	// Back is when the next stream opened, or when the pause was over; 0: neither.
	Back Instant `json:"back_ns,omitempty"`
	// Asked: the client said behind which message it wants to go on.
	Asked bool `json:"asked,omitempty"`
	// First is when the first message came after that, and Next the number of it; 0: none came.
	First Instant `json:"first_ns,omitempty"`
	Next  uint64  `json:"next,omitempty"`

	Doubled   uint64 `json:"doubled,omitempty"`   // messages that came again
	Repeated  uint64 `json:"repeated,omitempty"`  // the same, where the service may do that
	Announced uint64 `json:"announced,omitempty"` // times that the service said that messages are missing
}

// Away is for how long the client was without a message, ok only if one came again.
func (c *Cut) Away() (d time.Duration, ok bool) { return c.First - c.At, c.First > 0 }

// found is for how long after a pause a stream that ends was ended during it: the client first reads what came before.
const found = time.Second

// Cuts are those of one connection.
type Cuts struct {
	List     []Cut  `json:"list"`
	Unlisted uint64 `json:"unlisted,omitempty"` // beyond the bound: counted, not listed
}

// maxCuts limits how many cuts a connection remembers; further ones are only counted.
const maxCuts = 1000

// seam is for how long after a stream came back a message that comes again is one of the resume, and not one that
// merely came twice.
const seam = 5 * time.Second

// cuts are those of one connection; nil where the run makes none.
type cuts struct {
	Cuts
	came    bool // a message, on this stream and since the last pause
	pausing bool
	paused  bool    // the latest cut is a pause
	pauseAt Instant // when it began
	readAt  Instant // when it was over
}

// openUntil is how long a stream was open for all that its client knows that sees its end at an instant. One that ended
// while the client paused may have ended as soon as it did not read any more.
func (c *cuts) openUntil(at Instant) Instant {
	if c != nil && c.paused && (c.pausing || at-c.readAt <= found) {
		return min(at, c.pauseAt)
	}
	return at
}

// latest is the last cut, nil before the first, and where it is not remembered.
func (c *cuts) latest() *Cut {
	if c == nil || len(c.List) == 0 || c.Unlisted > 0 {
		return nil
	}
	return &c.List[len(c.List)-1]
}

// copied is what a record has of them.
func (c *cuts) copied() *Cuts {
	if c == nil || len(c.List) == 0 {
		return nil
	}
	return &Cuts{slices.Clone(c.List), c.Unlisted}
}

// CanCut says that the stream is open, and brought a message since the last cut: there is something to go on behind.
func (l *Ledger) CanCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cuts != nil && l.streamOpen && l.closeRequestedAt == 0 && l.cuts.came && !l.cuts.pausing
}

// Cut notes that the client cut the stream. One that ends is told to Closed next; a pause ends by PauseOver, or when the
// service ends the stream.
func (l *Ledger) Cut(at Instant, kind string, pause bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts == nil {
		return
	}
	l.cuts.came, l.cuts.pausing, l.cuts.paused = false, pause, pause
	if pause {
		l.cuts.pauseAt = at
		l.silentUntil(at)
	}
	if len(l.cuts.List) >= maxCuts {
		l.cuts.Unlisted++
		return
	}
	l.cuts.List = append(l.cuts.List, Cut{Kind: kind, At: at, Behind: l.highest()})
}

// PauseOver notes that the client reads again.
func (l *Ledger) PauseOver(at Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts == nil {
		return
	}
	l.cuts.pausing, l.cuts.came, l.cuts.readAt = false, false, at
	l.silence().heardAt = at // the silence was the client's own
	if c := l.cuts.latest(); c != nil && c.Back == 0 {
		c.Back = at
	}
}

// highest is the highest number that came.
func (l *Ledger) highest() uint64 {
	switch {
	case l.messages != nil:
		return l.messages.numbers.highest
	case l.byNumber != nil:
		return l.byNumber.numbers.highest
	}
	return 0
}

// cutLost notes that a stream ended: the last cut did it, or its pause was too long for the service.
func (l *Ledger) cutLost(at Instant) {
	if l.cuts == nil {
		return
	}
	c := l.cuts.latest()
	switch {
	case c == nil:
	case c.Back == 0, c.First == 0:
		c.Lost, c.Back = true, 0
	case l.cuts.paused && !c.Lost && at-c.Back <= found:
		c.Behind, c.Lost, c.Back, c.First, c.Next = l.highest(), true, 0, 0, 0
	}
	l.cuts.pausing, l.cuts.came = false, false
}

// cutOpened notes that the next stream opened.
func (l *Ledger) cutOpened(at Instant) {
	if l.cuts == nil {
		return
	}
	l.cuts.came = false
	if c := l.cuts.latest(); c != nil && c.Lost && c.Back == 0 {
		c.Back = at
		c.Asked = l.byNumber != nil && l.highest() > 0 // of noops; else Resumed says it
	}
}

// cutAsked notes that it was asked to go on behind the last message.
func (l *Ledger) cutAsked() {
	if c := l.cuts.latest(); c != nil && c.Lost && c.Back > 0 && c.First == 0 {
		c.Asked = true
	}
}

// cutAnnounced notes that the service said that messages are missing, before or after the headers of the next stream are
// noted.
func (l *Ledger) cutAnnounced(at Instant) {
	if c := l.cuts.latest(); c != nil && (c.Back == 0 || at-c.Back <= seam) {
		c.Announced++
	}
}

// cutBrought notes a message: the first after the last cut, or one that the resume brought again.
func (l *Ledger) cutBrought(at Instant, number uint64, doubled, repeated bool) {
	if l.cuts == nil {
		return
	}
	l.cuts.came = true
	c := l.cuts.latest()
	if c == nil || c.Back == 0 {
		return
	}
	if c.First == 0 {
		c.First, c.Next = at, number
	}
	if number > c.Behind && at-c.Back > seam {
		return
	}
	if doubled {
		c.Doubled++
	}
	if repeated {
		c.Repeated++
	}
}
