package model

import (
	"iter"
	"strings"
	"sync"
)

// An Outcome is the end of a response, as the server observed it.
type Outcome string

// The outcomes.
const (
	Open          Outcome = "open" // the response has not ended
	Complete      Outcome = "complete"
	Truncated     Outcome = "truncated" // the response ended without its terminal event
	ResetByServer Outcome = "reset"     // the server reset the connection
	ErrorEvent    Outcome = "error_event"
	Refused       Outcome = "refused"     // the status was not 200
	Disconnected  Outcome = "left"        // the client closed the connection first
	Interrupted   Outcome = "interrupted" // the server stopped first
)

// outcomes lists the outcomes of responses that have ended.
var outcomes = [...]Outcome{Complete, Truncated, ResetByServer, ErrorEvent, Refused, Disconnected, Interrupted}

// A Record is one request in the ledger. Times are in microseconds since 1970; 0: never.
type Record struct {
	ID                   string  `json:"id"`
	API                  string  `json:"api"`
	Stream               bool    `json:"stream"`
	Started              int64   `json:"started"`
	First                int64   `json:"first,omitempty"` // first chunk written
	Last                 int64   `json:"last,omitempty"`  // last chunk written
	Ended                int64   `json:"ended,omitempty"`
	Sent                 int32   `json:"sent"`              // chunks written; a chunk written twice counts twice
	Chunks               int32   `json:"of"`                // chunks of the whole answer
	Late                 int32   `json:"late_us,omitempty"` // maximum lateness of a chunk in microseconds
	Fault                string  `json:"fault,omitempty"`
	Outcome              Outcome `json:"outcome"`
	DisconnectedUS       int64   `json:"left,omitempty"`       // the client closed the connection
	SentBeforeDisconnect int32   `json:"left_after,omitempty"` // chunks written before DisconnectedUS
}

// A ledger holds the records of the most recent requests, at most capacity of them.
type ledger struct {
	capacity int
	mutex    sync.Mutex
	ring     []Record // request n is at n % capacity
	total    int      // requests so far
}

func (l *ledger) add(r Record) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	n := l.total
	l.total++
	if len(l.ring) < l.capacity {
		l.ring = append(l.ring, r)
	} else {
		l.ring[n%l.capacity] = r
	}
	return n
}

// put replaces the record of request n, unless a newer request uses its place.
func (l *ledger) put(n int, r Record) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if n >= l.total-len(l.ring) {
		l.ring[n%l.capacity] = r
	}
}

// records yields the requests whose id starts with prefix, the oldest first. It locks the mutex for each batch.
func (l *ledger) records(prefix string) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		batch := make([]Record, 0, 1024)
		for next := 0; ; {
			batch, next = l.batch(batch[:0], next)
			if len(batch) == 0 {
				return
			}
			for _, r := range batch {
				if strings.HasPrefix(r.ID, prefix) && !yield(r) {
					return
				}
			}
		}
	}
}

// batch appends records to buf, from request number next, up to the capacity of buf. It also returns the number after
// the last appended request.
func (l *ledger) batch(buf []Record, next int) ([]Record, int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	next = max(next, l.total-len(l.ring))
	for ; next < l.total && len(buf) < cap(buf); next++ {
		buf = append(buf, l.ring[next%l.capacity])
	}
	return buf, next
}
