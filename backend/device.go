package main

import (
	"container/list"
	"time"
)

// A closeReason is the reason why a stream ended, as reported in the ledger and the metrics.
type closeReason uint8

const (
	stillOpen         closeReason = iota
	closedByCall                  // DELETE /event/forcedisconnect
	closedByClient                // the client closed or reset the connection
	closedSlow                    // the client read too slowly
	closedReplaced                // replaced by a resumed stream
	closedByDrain                 // the service is stopping
	closedByError                 // the connection failed, or the peer acknowledged no data for USER_TIMEOUT
	closedByFault                 // an injected fault closed the stream
	closeReasonsCount             // number of reasons
)

var closeReasonNames = [closeReasonsCount]string{
	"", "forcedisconnect", "client", "slow", "replaced", "drain", "error", "fault",
}

func (r closeReason) String() string { return closeReasonNames[r] }

// A device is the state of one client id: the numbering, the stream if there is one, and the row in the ledger. Only
// the scheduler uses a device, except that the helpers of a batch read fd.
type device struct {
	id              string
	seq             uint64        // last number assigned to a noop or message
	first           uint64        // lowest sent number of the current numbering
	last            uint64        // highest sent number of the current numbering
	sentCount       uint64        // how many numbers of the current numbering were sent
	tick            int64         // last tick that gave this id a number, or the tick at which the numbering started
	openedAt        int64         // start of the latest stream, in microseconds since 1970
	closedAt        int64         // end of the latest stream, in microseconds since 1970; 0: open, or no stream yet
	queue           *backlog      // nil: nothing waits to be written
	tls             *tlsWriter    // nil without TLS
	postponedNoop   *item         // noop of a reorder fault, written after the next item with a number; nil: none
	messages        []keptMessage // messages that a resume can replay, oldest first
	replayableAfter uint64        // numbers up to this one cannot be replayed
	fd              int32         // descriptor of the stream; -1: none
	gen             uint32        // distinguishes this use of the descriptor from earlier and later uses
	bucket          int32         // bucket of the wheel; -1: none, because no numbering is active
	index           int32         // index in that bucket
	eviction        uint64        // value of hub.evictions after the eviction of this id; 0: not evicted
	element         *list.Element // element of hub.resumable or hub.finished
	streams         uint32        // number of streams that this id has had

	reason    closeReason // reason why the latest stream ended; stillOpen: it is open, or there was none yet
	ending    closeReason // reason for closing the stream after its backlog is written; stillOpen: not closing
	open      bool        // the id has a stream
	resumable bool        // no stream, but the numbering continues (RESUME_WINDOW)
	finished  bool        // no stream and no active numbering, but still in the ledger
	reserved  bool        // a connect is pending
	canceled  bool        // forcedisconnect or a drain canceled the pending connect
	chunked   bool        // the stream has chunked encoding (HTTP/1.1)
	slow      bool        // the socket buffer of this client, or its TLS queue, has been full in the current numbering
	stalled   bool        // a stall fault: nothing is written
	queued    bool        // in hub.lagging
}

// An item is data to write to a stream, and the numbers to count after the write.
type item struct {
	wire     []byte
	seq      uint64 // last number of the item; 0: none
	count    uint8  // how many numbers the item contains
	messages uint8  // how many of these numbers are messages; the others are noops
}

// A backlog holds those items of a stream that neither the kernel nor the queue of a TLS writer has accepted yet.
type backlog struct {
	items        []queuedItem
	bytes        int           // unwritten bytes of all items
	room         int           // maximum number of items; a client with more is slow
	delayedUntil time.Duration // elapsed time before which a delay fault suppresses writes; 0: no such fault
}

type queuedItem struct {
	item
	since time.Duration // elapsed time at which WRITE_TIMEOUT starts: when the item was queued, or when a delay ends
}

// maxBacklogBytes limits the bytes that wait for one client, in addition to its socket buffer.
const maxBacklogBytes = 1 << 20

// count counts the numbers of a written item. It returns false for an item without a number, or an item counted before.
func (d *device) count(sent item) bool {
	if sent.seq == 0 || sent.seq <= d.last {
		return false
	}
	if d.first == 0 {
		d.first = sent.seq - uint64(sent.count) + 1
	}
	d.last = sent.seq
	d.sentCount += uint64(sent.count)
	return true
}

// renumber starts a new numbering, whose first number is n+1.
func (d *device) renumber(n uint64) {
	d.seq, d.first, d.last, d.sentCount = n, 0, 0, 0
	d.slow, d.replayableAfter = false, 0
}
