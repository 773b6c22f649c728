package ledger

import (
	"slices"
	"sync"
	"time"
)

// MaxEntries limits the messages of one Log: ten hours at 1000 per second.
const MaxEntries = 36_000_000

const (
	// joinTime is the time after the headers of a stream in which the service may send messages to this stream alone: a
	// greeting, or a history of earlier messages.
	joinTime = time.Second
	// skew limits how long before the headers of a stream another stream may receive a message that is sent to both.
	skew = 100 * time.Millisecond
	// maxSkipAge is the age up to which a skipped message may still arrive. Later, a message with the same content is
	// new.
	maxSkipAge = 30 * time.Second
	// lookahead and lookback are the numbers of messages after and before the last one that are searched for repeated
	// content.
	lookahead = 1024
	lookback  = 4
)

// A Log lists the messages of one topic that the streams of a runner received, as fingerprints in the order of arrival.
// It numbers messages that carry no number: message n is entries[n−1]. All streams of the topic share it.
type Log struct {
	mu              sync.Mutex
	entries         []Entry
	index           map[uint64]uint32 // number of the first entry with a fingerprint
	extras          []Extra
	dropped         uint64 // number of messages beyond MaxEntries
	hasRepeat       bool   // a message, or a copy, has the content of an earlier message
	hasSharedRepeat bool   // several streams received a message with the content of an earlier one
}

// An Entry is one message of a Log.
type Entry struct {
	Print uint64  // Fingerprint.Sum of the message
	At    Instant // first arrival
	Count uint32  // streams that received it
	// Live reports whether a stream received the message after joinTime and after another message, or a resumed stream
	// received it after another stream.
	Live          bool
	Repeat        bool // an earlier entry has the same fingerprint, so this one may be a copy
	repeatedLater bool // a later entry has the same fingerprint; set only in the first entry with the fingerprint
}

// An Extra is a message that has the content of an earlier message. Some streams received it after the message with the
// number After, where the Log does not list it. If most streams received the Extra, it is a message that the others
// missed; otherwise it is a copy.
type Extra struct {
	After uint64
	Print uint64
	At    Instant
	Count uint32
	// Resumed reports whether all streams that received the Extra had just resumed. It is then a copy.
	Resumed bool `json:",omitempty"`
}

// NewLog returns an empty log.
func NewLog() *Log { return &Log{index: map[uint64]uint32{}} }

// Entries returns the messages so far, the messages that streams received again, and the number of messages beyond
// MaxEntries.
func (l *Log) Entries() (entries []Entry, extras []Extra, dropped uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries), slices.Clone(l.extras), l.dropped
}

func (l *Log) at(number uint64) *Entry { return &l.entries[number-1] }

// isAmbiguous reports whether a message may be mistaken for another one with the same content.
func (l *Log) isAmbiguous(number uint64) bool {
	e := l.at(number)
	return l.hasSharedRepeat || e.Repeat || e.repeatedLater
}

func (l *Log) last() uint64 { return uint64(len(l.entries)) }

func (l *Log) add(print uint64, at Instant) (number uint64) {
	e := Entry{Print: print, At: at}
	number = l.last() + 1
	if first, known := l.index[print]; known {
		e.Repeat, l.at(uint64(first)).repeatedLater, l.hasRepeat = true, true, true
	} else {
		l.index[print] = uint32(number) // #nosec G115 -- at most MaxEntries
	}
	l.entries = append(l.entries, e)
	return number
}

// hasNearby reports whether a message within lookback of a number has this content.
func (l *Log) hasNearby(number, print uint64) bool {
	for n := max(number, lookback+1) - lookback; n <= min(number+lookback, l.last()); n++ {
		if l.at(n).Print == print {
			return true
		}
	}
	return false
}

// countReceived counts the Live messages of a range that at least two streams received and that first arrived before an
// instant.
func (l *Log) countReceived(from, to uint64, before Instant) (count uint64) {
	for n := from; n <= to && l.at(n).At < before; n++ {
		if e := l.at(n); e.Live && e.Count > 1 {
			count++
		}
	}
	return count
}

// extra counts a message that a stream received again after another message, and returns the index of its Extra.
func (l *Log) extra(after uint64, p *Fingerprint, resumed bool) int {
	i := slices.IndexFunc(l.extras, func(e Extra) bool { return e.After == after && e.Print == p.Sum })
	if i < 0 {
		i = len(l.extras)
		l.extras = append(l.extras, Extra{After: after, Print: p.Sum, At: p.At, Resumed: true})
	}
	e := &l.extras[i]
	e.Count, e.Resumed = e.Count+1, e.Resumed && resumed
	return i
}
