package ledger

type resumeIDState uint8

const (
	idMissing  resumeIDState = iota // no id has arrived
	idReceived                      // the client has an id
	idEmptied                       // the service has reset the id
)

// An idReset is an event that left a client without an id to resume from.
type idReset struct {
	at    Instant
	event string
	after uint64 // the highest number that had arrived
}

// IDReceived records that the client has an id to resume from.
func (l *Ledger) IDReceived() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream.cfg.Counting != Noops { // noops are expected by interval, whether or not the service resumes
		l.idState = idReceived
	}
}

// IDReset records that an event with an empty id field reset the id of the client (HTML standard, section 9.2.6). The
// parameter event describes that event.
func (l *Ledger) IDReset(at Instant, event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idState != idReceived {
		return
	}
	l.idState = idEmptied
	l.extras().reset = &idReset{at, event, l.highest()}
}

// resume decides whether messages published since the previous stream are expected on the new one. It records a finding
// if a service that promises to resume left the client without an id.
func (l *Ledger) resume(at Instant) {
	switch {
	case l.stream.count < 2:
		return
	case l.idState == idReceived:
		l.cutResumed()
		l.messages.resume()
		return
	case !l.stream.cfg.Resumes || l.messages == nil || !l.messages.hasNumber || l.stream.closeRequestedAt != 0:
		return
	}
	x := l.extras()
	if l.idState == idEmptied {
		l.messages.resume()
		x.IDResets++
		l.find(Finding{Kind: KindIDReset, At: x.reset.at, From: x.reset.after, Note: x.reset.event})
		return
	}
	x.NoIDs++
	l.find(Finding{Kind: KindNoID, At: at})
}

func (c *deliveries) resume() {
	if c == nil {
		return
	}
	if span := c.openSpan(); span != nil {
		span.Resumed = true
	}
}
