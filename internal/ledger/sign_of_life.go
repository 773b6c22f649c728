package ledger

// A SignOfLife is a kind of data that shows that a stream is alive.
type SignOfLife int

// The signs of life.
const (
	OtherSign        SignOfLife = iota // data that RecordSign does not count
	HeartbeatSign                      // a heartbeat
	ForeignSign                        // a message of another publisher, or of another run
	UncheckedSign                      // an event that message.event names and that is not checked
	UnknownBlockSign                   // a block that is neither message nor heartbeat
)

// RecordSign counts a sign of life on the open stream, except OtherSign, and ends the present silence.
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
