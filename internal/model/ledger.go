package model

import (
	"iter"
	"strings"
	"sync"
)

// An Outcome is how a response ended, as the server knows it.
type Outcome uint8

// The outcomes.
const (
	Open        Outcome = iota // not ended yet
	Complete                   // the terminal event was sent
	Truncated                  // the response ended without its terminal event
	ResetByUs                  // the connection was reset
	ErrorEvent                 // an error event was sent
	Refused                    // another status than 200
	Left                       // the client closed the connection first
	Interrupted                // the server stopped first
)

var outcomes = [...]string{"open", "complete", "truncated", "reset", "error_event", "refused", "left", "interrupted"}

// String returns the name of the outcome.
func (o Outcome) String() string { return outcomes[o] }

// An entry is one request in the ledger. Times are in microseconds since 1970; 0 is never.
type entry struct {
	id      string
	started int64
	first   int64 // first chunk written
	last    int64 // last chunk written
	ended   int64
	left    int64 // the client left
	sent    int32 // chunks written; a chunk written twice counts twice
	total   int32 // chunks of the whole answer
	k       int32 // of the fault
	late    int32 // most microseconds that a chunk was written after its time
	kind    Kind  // of the fault
	outcome Outcome
	api     uint8 // index of apis
	stream  bool
}

// A Record is one request in the ledger as JSON.
type Record struct {
	ID        string `json:"id"`
	API       string `json:"api"`
	Stream    bool   `json:"stream"`
	Started   int64  `json:"started"`
	First     int64  `json:"first,omitempty"`
	Last      int64  `json:"last,omitempty"`
	Ended     int64  `json:"ended,omitempty"`
	Sent      int32  `json:"sent"`
	Of        int32  `json:"of"`
	Late      int32  `json:"late_us,omitempty"`
	Fault     string `json:"fault,omitempty"`
	Outcome   string `json:"outcome"`
	Left      int64  `json:"left,omitempty"`
	LeftAfter int32  `json:"left_after,omitempty"`
}

func (e *entry) record() Record {
	r := Record{
		ID: e.id, API: apis[e.api].name(), Stream: e.stream,
		Started: e.started, First: e.first, Last: e.last, Ended: e.ended, Left: e.left, Late: e.late,
		Sent: e.sent, Of: e.total, Fault: Fault{e.kind, int(e.k)}.String(), Outcome: e.outcome.String(),
	}
	if e.left != 0 {
		r.LeftAfter = e.sent
	}
	return r
}

// A ledger remembers the last requests: a ring, as long as keep.
type ledger struct {
	capacity int
	mutex    sync.Mutex
	ring     []entry // of request number n at n % keep
	total    int     // requests so far
}

// add adds a request and returns its number.
func (l *ledger) add(e entry) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	n := l.total
	l.total++
	if len(l.ring) < l.capacity {
		l.ring = append(l.ring, e)
	} else {
		l.ring[n%l.capacity] = e
	}
	return n
}

// put replaces the entry of request n, unless a newer request uses its place.
func (l *ledger) put(n int, e entry) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if n >= l.total-len(l.ring) {
		l.ring[n%l.capacity] = e
	}
}

// records yields the requests whose id has a prefix, the oldest first. It locks the mutex for one batch at a time.
func (l *ledger) records(prefix string) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		batch := make([]entry, 0, 1024)
		for next := 0; ; {
			batch, next = l.batch(batch[:0], next)
			if len(batch) == 0 {
				return
			}
			for i := range batch {
				if strings.HasPrefix(batch[i].id, prefix) && !yield(batch[i].record()) {
					return
				}
			}
		}
	}
}

// batch copies entries from request number next on, and returns the number after the last.
func (l *ledger) batch(to []entry, next int) ([]entry, int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	next = max(next, l.total-len(l.ring))
	for ; next < l.total && len(to) < cap(to); next++ {
		to = append(to, l.ring[next%l.capacity])
	}
	return to, next
}
