package ledger

import "time"

// Connecting records the start of a dial.
func (l *Ledger) Connecting(at Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.attempts == 0 && l.stream.closeRequestedAt == 0 {
		l.outage = &Outage{From: at}
	}
	if !l.opening {
		l.opening, l.dials.first = true, at
	}
	l.stream.dialing, l.dials.last = true, at
	l.attempts++
	if l.stream.count == 0 && l.state != Refused {
		l.state = Connecting
	}
}

// Opened records that the headers of an accepted response are complete, and returns the time since the first dial after
// the previous stream. Messages are expected from this instant on.
func (l *Ledger) Opened(at Instant) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	connect := at - l.dials.first
	l.stream.count++
	if l.extra != nil {
		l.extra.replayable = 0
	}
	if l.stream.count == 1 {
		l.connected(at, connect)
	} else if o := l.endOutage(at); o != nil {
		l.reconnected(at, o)
	}
	l.state = Open
	l.opening = false
	l.stream.dialing, l.stream.open, l.stream.lifetimeOver = false, true, false
	l.stream.openedAt, l.silences.lastSignAt = at, at
	l.clock.opened(at)
	if l.byNumber != nil {
		l.byNumber.opened(at)
	}
	if l.messages != nil {
		l.messages.opened(at)
	}
	l.cutOpened(at)
	l.resume(at)
	return connect
}

// CloseRequested records the request to end the stream. From this instant on no noop is expected, and the end of the
// stream is not a drop. CloseRequested reports whether a stream is open.
func (l *Ledger) CloseRequested(at Instant) (open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream.closeRequestedAt != 0 {
		return l.stream.open
	}
	l.stream.closeRequestedAt = max(at, 1)
	outage := l.endOutage(at)
	switch {
	case l.state == Waiting:
		l.decideLastOutage(at, outage)
	case l.state == Connecting && !l.stream.dialing: // no further attempt follows
		l.refuse(at, l.end.reason)
	}
	return l.stream.open
}

// EndByClient records that the client closes the stream after CloseRequested, because its runner could not send
// the request that ends the stream. The stream then counts as completed, as with Config.ClientEnds.
func (l *Ledger) EndByClient() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stream.clientEnds = true
}

// decideLastOutage decides the state of a client that is disconnected when its end is requested. The client is
// completed if its outage is at most MaxOutage, or if lifetimeOver is set. Otherwise it stays Waiting: it counts as
// dropped unless the current attempt opens a stream.
func (l *Ledger) decideLastOutage(at Instant, o *Outage) {
	x := l.extras()
	x.LastOutage = o
	if l.stream.dialing {
		x.Unanswered = at - l.dials.last
	}
	if l.stream.lifetimeOver || o.To-o.From <= l.stream.cfg.MaxOutage {
		l.state = Completed
		l.closeCounters(o.From, at)
	}
}

// Closed records the end of a stream or of an attempt to open one. endedByServer reports whether the server ended the
// stream, even if the response is incomplete. reconnects reports whether the client is going to reconnect. reason is the
// name of the cause in reports.
func (l *Ledger) Closed(at Instant, reason string, endedByServer, reconnects bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	requested := l.stream.closeRequestedAt != 0
	l.stream.dialing = false
	if l.stream.open {
		l.streamClosed(at, reason, endedByServer, reconnects)
	} else {
		l.attemptFailed(at, reason)
	}
	if !reconnects {
		l.endOutage(at)
	}
	isCanceledAttempt := reason == ReasonClient && (l.state == Completed || l.state == Waiting)
	if !isCanceledAttempt {
		l.end.reason = reason
	}
	if reconnects && !requested {
		if l.stream.count > 0 {
			l.state = Waiting
		}
		return
	}
	end := l.stream.expectedUntil(at)
	asPlanned := l.stream.lifetimeOver || requested && (endedByServer || l.clientEnds() && reason == ReasonClient)
	switch {
	case l.stream.count == 0:
		l.refuse(at, reason)
	case requested && (l.state == Completed || l.state == Waiting): // the last attempt: CloseRequested has decided
	case l.state == Open && asPlanned:
		l.state = Completed
		l.closeCounters(end, end)
	case l.state == Open && (requested || reason == ReasonClient || reason == ReasonInterrupted):
		l.state = Unfinished
		l.closeCounters(end, end)
	default:
		l.closeCounters(end, end)
		l.state = Dropped
		l.find(Finding{Kind: KindDropped, At: at, Note: reason})
	}
}

func (l *Ledger) streamClosed(at Instant, reason string, endedByServer, reconnects bool) {
	requested, end := l.stream.closeRequestedAt != 0, l.stream.expectedUntil(at)
	l.stream.open = false
	if l.stream.cfg.Counting != Noops {
		l.endSilence(end)
	}
	if l.messages != nil {
		l.messages.endSpan(end)
	}
	byClient := reason == ReasonClient || reason == ReasonInterrupted || reason == ReasonCut
	if l.stream.cfg.Lifetime > 0 && !requested && !byClient {
		l.checkLifetime(at, endedByServer)
	}
	l.checkLongestLifetime(at)
	if !requested {
		l.cutLost(at)
	}
	l.end.openTotal += at - l.stream.openedAt
	l.end.open += max(end-l.stream.openedAt, 0)
	l.end.at = at
	if !reconnects || requested {
		return
	}
	cut := reason == ReasonCut
	l.outage = &Outage{From: at, Cut: cut, Planned: l.stream.lifetimeOver || cut}
	if l.messages != nil && l.outage.Planned {
		l.messages.endedAsPlanned(cut)
	}
	if l.stream.cfg.Counting == Noops {
		l.clock.streamLost(at)
	}
	if l.byNumber != nil {
		l.byNumber.streamLost(at)
	}
}

// clientEnds reports whether the client ends the stream: the service accepts no request to end streams, the request
// could not be sent, or the stream was not open when the end was requested.
func (l *Ledger) clientEnds() bool {
	return l.stream.cfg.ClientEnds || l.stream.clientEnds || l.stream.openedAfterRequest()
}

// checkLifetime counts a stream as ended early if it was shorter than Lifetime, measured from the dial, because the
// headers may be late. Otherwise, an end by the server sets lifetimeOver.
func (l *Ledger) checkLifetime(at Instant, endedByServer bool) {
	if at-l.dials.last < l.stream.cfg.Lifetime {
		l.extras().EndedEarly++
		l.find(Finding{Kind: KindEndedEarly, At: at, Lateness: at - l.stream.openedAt})
		return
	}
	l.stream.lifetimeOver = endedByServer
}

// lifetimeDivisor is the divisor of the tolerance: a stream may exceed its maximum lifetime by at least one twentieth,
// because clocks differ and machines are busy.
const lifetimeDivisor = 20

// checkLongestLifetime counts a stream as overdue if it was open longer than its maximum lifetime plus a tolerance.
func (l *Ledger) checkLongestLifetime(at Instant) {
	longest, duration := l.stream.cfg.MaxLifetime, l.stream.cuts.openUntil(l.stream.expectedUntil(at))-l.stream.openedAt
	if longest > 0 && duration > longest+max(l.stream.cfg.LatenessLimit, longest/lifetimeDivisor) {
		l.extras().Overdue++
		l.find(Finding{Kind: KindOverdue, At: at, Lateness: duration})
	}
}

// Explain adds the text of an error, or of the response that refused the client, to the finding that Closed recorded,
// if any. It ignores further texts for the same finding.
func (l *Ledger) Explain(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text == "" || l.extra == nil || len(l.extra.Findings) == 0 {
		return
	}
	f := &l.extra.Findings[len(l.extra.Findings)-1]
	if (f.Kind == KindRefused || f.Kind == KindDropped) && f.Note == l.end.reason {
		f.Note += ": " + text
	}
}

// closeCounters closes the counts of noops, with the arguments of counter.close. Slots in doubt count as missed.
func (l *Ledger) closeCounters(end, at Instant) {
	if l.stream.cfg.Counting != Noops {
		return // package verdict determines the expected messages
	}
	l.clock.close(end, at)
	if l.byNumber == nil {
		return
	}
	x := l.extra
	if x == nil {
		l.byNumber.close(end, at, 0)
		return
	}
	if l.byNumber.close(end, at, x.replayable) && x.LastOutage == nil && x.latestOutage != nil {
		x.LastOutage = x.latestOutage
	}
}
