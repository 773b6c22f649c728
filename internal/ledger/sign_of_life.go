package ledger

// A SignOfLife is a kind of data on a stream other than messages.
type SignOfLife int

// The signs of life.
const (
	OtherSign        SignOfLife = iota // data that RecordSign does not count
	HeartbeatSign                      // a heartbeat
	ForeignSign                        // a message of another publisher
	UncheckedSign                      // an event that message.event names and that is not checked
	UnknownBlockSign                   // a block that is neither message nor heartbeat
)

// RecordSign records a sign of life on the open stream.
func (l *Ledger) RecordSign(at Instant, sign SignOfLife) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch sign {
	case OtherSign:
	case HeartbeatSign:
		l.extras().Heartbeats++
	case ForeignSign:
		l.extras().Foreign++
	case UncheckedSign:
		l.extras().Unchecked++
	case UnknownBlockSign:
		l.extras().Uncounted++
	}
	l.endSilence(at)
}

// endSilence ends a time without a sign of life.
func (l *Ledger) endSilence(at Instant) {
	if l.stream.cfg.IgnoresSilence {
		return
	}
	s := &l.silences
	if silence := at - s.lastSignAt; silence > s.longest {
		s.longest, s.startedAt = silence, s.lastSignAt
	}
	s.lastSignAt = max(s.lastSignAt, at) // a comment line may be recognized as a heartbeat only after the next block
}
