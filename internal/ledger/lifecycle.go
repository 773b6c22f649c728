package ledger

import "time"

// Connecting notes that a dial begins.
func (l *Ledger) Connecting(at Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rec.Attempts == 0 && l.closeRequestedAt == 0 {
		l.leave(at)
	}
	if l.dials == nil || l.dials.over {
		l.dials = &dials{from: at}
	}
	l.dialing, l.dials.last = true, at
	l.rec.Attempts++
	if l.streams == 0 && l.rec.State() != Refused {
		l.rec.become(Connecting)
	}
}

// Opened notes that the headers of a good response are complete: the first noop is awaited from
// here on, not from the dial. It returns how long the connect took, from the first dial since the last
// stream.
func (l *Ledger) Opened(at Instant) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := at - l.dials.begun()
	l.streams++
	if l.rec.rare != nil {
		l.rec.rare.kept = 0
	}
	switch o := l.comeBack(at); {
	case l.streams == 1:
		l.rec.connected(at, took)
	case o != nil:
		l.cameBack(at, o)
	}
	l.rec.become(Open)
	l.dialing = false
	if l.cfg.Lifetime == 0 {
		l.dials = nil
	} else if l.dials != nil {
		l.dials.over = true
	}
	l.streamOpen, l.served = true, false
	l.openedAt = at
	if l.silences != nil {
		l.silences.heardAt = at
	}
	l.clock.opened(at)
	if l.byNumber != nil {
		l.byNumber.opened(at)
	}
	if l.messages != nil {
		l.messages.opened(at)
	}
	l.cutOpened(at)
	l.resume(at)
	return took
}

// CloseRequested records that the end of the stream is being requested. From now on no noop is expected, and the end of the
// stream is not a drop. It reports whether a stream is open.
func (l *Ledger) CloseRequested(at Instant) (open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closeRequestedAt != 0 {
		return l.streamOpen
	}
	l.closeRequestedAt = max(at, 1)
	outage := l.comeBack(at)
	switch {
	case l.rec.State() == Waiting:
		l.endOutage(at, outage)
	case l.rec.State() == Connecting && !l.dialing: // between two attempts, and none follows
		l.refuse(at, l.rec.theEnd().Reason)
	}
	return l.streamOpen
}

// endOutage decides the state of a client that is disconnected when its end is requested. The client is completed if its
// outage is at most MaxOutage, or if it was disconnected as planned and has not been refused since. Otherwise it stays Waiting:
// it counts as dropped unless the current attempt opens a stream.
func (l *Ledger) endOutage(at Instant, o *Outage) {
	rare := l.rec.rarely()
	rare.LastOutage = o
	if l.dialing {
		rare.Unanswered = at - l.dials.latest()
	}
	if l.served || o.To-o.From <= l.cfg.MaxOutage {
		l.rec.become(Completed)
		l.closeCounters(o.From, at)
	}
}

// Closed notes the end of a stream or of an attempt to open one. clean: the server ended the stream.
// reason is its name in reports. again: the client is going to reconnect.
func (l *Ledger) Closed(at Instant, reason string, clean, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := l.closeRequestedAt != 0
	l.dialing = false
	if l.streamOpen {
		l.streamOpen = false
		l.ended(at)
		if l.cfg.Lifetime > 0 && !asked && reason != ReasonClient && reason != ReasonInterrupted && reason != ReasonCut {
			l.lived(at, clean)
		}
		l.outlived(at)
		if !asked {
			l.cutLost(at)
		}
		past := l.rec.ended()
		past.Held += at - l.openedAt
		past.Open += max(l.end(at)-l.openedAt, 0)
		past.ClosedAt = at
		if again && !asked {
			l.lose(at)
			l.outage.Cut = reason == ReasonCut
			l.outage.Planned = l.served || l.outage.Cut
			if l.messages != nil && l.outage.Planned {
				l.messages.planned(l.outage.Cut)
			}
		}
	} else {
		l.attemptFailed(at, reason)
	}
	if !again {
		l.comeBack(at)
	}
	if state := l.rec.State(); state != Completed && state != Waiting || reason != ReasonClient { // otherwise the client gave up an attempt
		l.rec.ended().Reason = reason
	}
	switch {
	case again && !asked:
		if l.streams > 0 {
			l.rec.become(Waiting)
		}
	case l.streams == 0:
		l.refuse(at, reason)
	case asked && (l.rec.State() == Completed || l.rec.State() == Waiting): // the last attempt: CloseRequested has decided
	case l.served && l.rec.State() == Open: // reconnecting was turned off a moment ago
		l.rec.become(Completed)
		l.closeCounters(l.end(at), l.end(at))
	case asked && (clean || l.clientEnds() && reason == ReasonClient) && l.rec.State() == Open:
		l.rec.become(Completed)
		l.closeCounters(l.end(at), l.end(at))
	case l.rec.State() == Open && (asked || reason == ReasonClient || reason == ReasonInterrupted):
		l.rec.become(Unfinished)
		l.closeCounters(l.end(at), l.end(at))
	default:
		l.closeCounters(l.end(at), l.end(at))
		l.rec.become(Dropped)
		l.rec.find(Finding{Kind: KindDropped, At: at, Note: reason})
	}
}

// clientEnds reports whether the client ends the stream: the service accepts no request for that, or the stream was not open when
// the end was requested.
func (l *Ledger) clientEnds() bool { return l.cfg.ClientEnds || l.openedAfterRequest() }

// ended notes the end of a stream of a described service.
func (l *Ledger) ended(at Instant) {
	if l.cfg.Counting == Noops {
		return
	}
	l.silentUntil(l.end(at))
	if l.messages != nil {
		l.messages.endSpan(l.end(at))
	}
}

// lived compares the life of a stream that nobody asked to end with what the service gives it. Its headers may have come
// late: the service began it when the client asked for it, or after that.
func (l *Ledger) lived(at Instant, clean bool) {
	if at-l.dials.latest() < l.cfg.Lifetime {
		l.rec.rarely().Cut++
		l.rec.find(Finding{Kind: KindCut, At: at, Lateness: at - l.openedAt})
		return
	}
	l.served = clean
}

// outlived compares the life of a stream with what the service gives it at most, less what its clock and a busy machine may
// take.
func (l *Ledger) outlived(at Instant) {
	longest := l.cfg.Longest
	if lived := l.cuts.openUntil(l.end(at)) - l.openedAt; longest > 0 && lived > longest+max(l.cfg.Late, longest/overdue) {
		l.rec.rarely().Overdue++
		l.rec.find(Finding{Kind: KindOverdue, At: at, Lateness: lived})
	}
}

// overdue is the share of its lifetime by which a stream may end late.
const overdue = 20

// Explain adds a text to the finding of Closed: that of an error, or of the answer that refused the
// client.
func (l *Ledger) Explain(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text == "" || l.rec.rare == nil || len(l.rec.rare.Findings) == 0 {
		return
	}
	f := &l.rec.rare.Findings[len(l.rec.rare.Findings)-1]
	if (f.Kind == KindRefused || f.Kind == KindDropped) && f.Note == l.rec.theEnd().Reason {
		f.Note += ": " + text
	}
}

// lose notes that the stream is lost, and another follows.
func (l *Ledger) lose(at Instant) {
	l.leave(at)
	if l.cfg.Counting != Noops {
		return
	}
	l.clock.lose(at)
	if l.byNumber != nil {
		l.byNumber.lose(at)
	}
}

// closeCounters closes both counters. The last stream ended at the instant end; the client was disconnected until the instant at.
// Slots still in doubt count as missed. Noops due between end and at are undetectable.
func (l *Ledger) closeCounters(end, at Instant) {
	if l.cfg.Counting != Noops {
		return // what was owed is decided when all is known
	}
	l.clock.close(end, at)
	if l.byNumber == nil {
		return
	}
	rare := l.rec.rarities()
	if l.byNumber.close(end, at, rare.kept) && rare.LastOutage == nil && rare.latest != nil {
		rare.LastOutage = rare.latest
	}
}

// end is the last moment of the stream at which a noop could still be owed.
func (l *Ledger) end(at Instant) Instant {
	if l.closeRequestedAt != 0 {
		return min(at, l.closeRequestedAt)
	}
	return at
}
