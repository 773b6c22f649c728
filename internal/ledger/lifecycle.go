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
	return took
}

// CloseRequested notes that the server is now being asked to end the stream. From here on no further noop
// is owed, and the end of the stream is no drop.
func (l *Ledger) CloseRequested(at Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closeRequestedAt != 0 {
		return
	}
	l.closeRequestedAt = max(at, 1)
	l.comeBack(at)
	switch {
	case l.rec.State() == Waiting && l.served: // nobody wants another stream
		l.rec.become(Completed)
		end := l.rec.theEnd().ClosedAt // what fell due since then the next stream would have brought
		if l.dialing {
			if l.rec.rarely().Unanswered = at - l.dials.latest(); l.rec.rare.Unanswered > l.cfg.tolerance() {
				end = at // if the service had answered
			}
		}
		l.closeCounters(end)
	case l.rec.State() == Connecting && !l.dialing: // between two attempts, and none follows
		l.refuse(at, l.rec.theEnd().Reason)
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
	l.rec.ended().Reason = reason
	switch {
	case again && !asked:
		if l.streams > 0 {
			l.rec.become(Waiting)
		}
	case l.streams == 0:
		l.refuse(at, reason)
	case l.served && asked && l.rec.State() == Completed: // the last attempt
	case l.served && l.rec.State() == Open: // the client was told a moment ago that it shall not come back
		l.rec.become(Completed)
		l.closeCounters(l.end(at))
	case asked && (clean || l.cfg.ClientEnds && reason == ReasonClient) && l.rec.State() == Open:
		l.rec.become(Completed)
		l.closeCounters(l.end(at))
	case l.rec.State() == Open && (asked || reason == ReasonClient || reason == ReasonInterrupted):
		l.rec.become(Unfinished)
		l.closeCounters(l.end(at))
	default:
		l.closeCounters(l.end(at))
		l.rec.become(Dropped)
		l.rec.find(Finding{Kind: KindDropped, At: at, Note: reason})
	}
}

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
	l.clock.lose()
	if l.byNumber != nil {
		l.byNumber.lose(at)
	}
}

// closeCounters ends both counts with the last stream: slots that are still in doubt are missed.
func (l *Ledger) closeCounters(end Instant) {
	if l.cfg.Counting != Noops {
		return // what was owed is decided when all is known
	}
	l.clock.close(end)
	if l.byNumber != nil {
		l.byNumber.close(end)
	}
}

// end is the last moment of the stream at which a noop could still be owed.
func (l *Ledger) end(at Instant) Instant {
	if l.closeRequestedAt != 0 {
		return min(at, l.closeRequestedAt)
	}
	return at
}
