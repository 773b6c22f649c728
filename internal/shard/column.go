package shard

import (
	"encoding/binary"
	"iter"
)

const (
	// unitUS is the unit of lags and answer times, in microseconds. Lags are rounded down, answer times up.
	unitUS = 500

	maxUnits  = uint64(maxLength / (unitUS * 1000))
	maxStatus = 999
)

// A codedMessage is a message with its lag and its answer time in units of unitUS.
type codedMessage struct {
	lag, answer uint64
	status      uint16
	state       MessageState
}

// A column holds the messages of one topic in the order of their numbers, as varints. lags has the lag behind the
// schedule and the state of each message. answers has the status of each refused message, and the answer time of each
// message that is not Open.
type column struct {
	count         int
	lags, answers []byte
}

func (c *column) append(m codedMessage) {
	c.count++
	c.lags = binary.AppendUvarint(c.lags, m.lag<<2|uint64(m.state))
	if m.state == Refused {
		c.answers = binary.AppendUvarint(c.answers, uint64(m.status))
	}
	if m.state != Open {
		c.answers = binary.AppendUvarint(c.answers, m.answer)
	}
}

// all yields the messages up to the first unreadable one.
func (c *column) all() iter.Seq[codedMessage] {
	return func(yield func(codedMessage) bool) {
		for unread := *c; len(unread.lags) > 0; {
			if m, ok := unread.next(); !ok || !yield(m) {
				return
			}
		}
	}
}

// next removes and returns the first message. ok is false if it is unreadable.
func (c *column) next() (m codedMessage, ok bool) {
	lag, ok := takeNumber(&c.lags, maxUnits<<2|3)
	m.lag, m.state = lag>>2, MessageState(lag&3)
	if !ok || m.state > Refused {
		return m, false
	}
	if m.state == Refused {
		status, ok := takeNumber(&c.answers, maxStatus)
		if !ok {
			return m, false
		}
		m.status = uint16(status) // #nosec G115 -- at most maxStatus
	}
	if m.state != Open {
		m.answer, ok = takeNumber(&c.answers, maxUnits)
	}
	return m, ok
}

// countMessages sets count, and reports whether the whole column is readable.
func (c *column) countMessages() bool {
	c.count = 0
	for unread := *c; len(unread.lags)+len(unread.answers) > 0; c.count++ {
		if _, ok := unread.next(); !ok {
			return false
		}
	}
	return true
}

// takeNumber removes and returns the first number of text. ok is false if it is unreadable or exceeds the maximum.
func takeNumber(text *[]byte, maximum uint64) (v uint64, ok bool) {
	v, n := binary.Uvarint(*text)
	if n <= 0 || v > maximum {
		return 0, false
	}
	*text = (*text)[n:]
	return v, true
}

// A piece is a part of a column in a file. Its size is limited, because a reader holds a whole JSON value in memory.
type piece struct {
	Topic   int    `json:"topic"`
	Lags    []byte `json:"lags,omitempty"`
	Answers []byte `json:"answers,omitempty"`
}

const (
	pieceSize = 1 << 20 // maximum bytes of Lags, and of Answers
	maxPieces = MaxTopics + maxColumns/pieceSize
	// maxColumns is the maximum size of all columns in bytes. Most messages need two bytes. A message that was sent a
	// day late and refused after a day needs eleven.
	maxColumns = 12 * MaxPublished
)

func (p *Published) pieces() iter.Seq[*piece] {
	return func(yield func(*piece) bool) {
		for topic, c := range p.columns {
			for len(c.lags)+len(c.answers) > 0 {
				lags, answers := min(len(c.lags), pieceSize), min(len(c.answers), pieceSize)
				if !yield(&piece{Topic: topic, Lags: c.lags[:lags], Answers: c.answers[:answers]}) {
					return
				}
				c.lags, c.answers = c.lags[lags:], c.answers[answers:]
			}
		}
	}
}
