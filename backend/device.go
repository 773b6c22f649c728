package main

import (
	"container/list"
	"time"
)

// A closeReason is why a stream ended, as ledger and metrics name it.
type closeReason uint8

const (
	stillOpen         closeReason = iota
	closedByCall                  // DELETE /event/forcedisconnect
	closedByClient                // the client closed or reset the connection
	closedSlow                    // the client did not read
	closedReplaced                // replaced by a resumed stream
	closedByDrain                 // the service ends
	closedByError                 // the connection failed, or the peer fell silent
	closedByFault                 // injected
	closeReasonsCount             // number of the above
)

var closeReasonNames = [closeReasonsCount]string{
	"", "forcedisconnect", "client", "slow", "replaced", "drain", "error", "fault",
}

func (r closeReason) String() string { return closeReasonNames[r] }

// A device is one device id: its numbering, its stream if it has one, and its line in the ledger. It is small because
// there are many, and belongs to the scheduler alone.
type device struct {
	id              string
	seq             uint64 // last number of a noop or message
	first           uint64 // lowest number put on a stream, of the present numbering
	last            uint64 // highest of these
	sent            uint64 // how many numbers were put on a stream
	tick            int64  // last tick that counted for this id
	opened          int64  // microseconds since 1970, of the latest stream
	closed          int64  // the same; 0 while a stream is open
	queue           *backlog
	tls             *tlsWriter    // instead of fd's own writes
	swapped         *item         // a noop that a fault sends after the next one
	messages        []keptMessage // messages that a resume can replay, oldest first
	replayableAfter uint64        // nothing up to this number can be replayed
	fd              int32         // descriptor of the stream, -1 without
	gen             uint32        // distinguishes this use of the descriptor from others
	bucket          int32         // of the wheel, -1 when its noops are not counted
	index           int32         // in that bucket
	eviction        uint64        // which eviction from the ledger this id was; 0 for none
	lapse           *list.Element // its entry in hub.numbered or hub.ended
	streams         uint32        // streams this id has had

	reason    closeReason // of the last close
	ending    closeReason // set while the last frames are flushed
	open      bool        // a stream is attached
	numbered  bool        // no stream, but the numbering continues (RESUME_WINDOW)
	ended     bool        // no stream, the ledger remembers it
	reserved  bool        // a connect is on its way
	cancelled bool        // forcedisconnect overtook that connect
	chunked   bool        // HTTP/1.1
	slow      bool        // a frame once had to wait for this client
	stalled   bool        // a fault: nothing more is written
	queued    bool        // listed in hub.lagging
}

// An item is a part of a stream to write, and the counters to increase after the write.
type item struct {
	wire    []byte
	seq     uint64 // number to count; 0 counts nothing
	count   uint8  // how many numbers end at seq
	message bool   // a message, not a noop
}

// A backlog holds the items that a client has not received yet.
type backlog struct {
	items        []queuedItem
	bytes        int
	room         int           // most items before the client counts as slow
	delayedUntil time.Duration // nothing is written before (a delay fault); elapsed time
}

type queuedItem struct {
	item
	since time.Duration // elapsed time from which on the kernel could have accepted it
}

// maxBacklogBytes limits the bytes that wait for one client, in addition to its socket buffer.
const maxBacklogBytes = 1 << 20

// count counts numbers that the kernel accepted. A replayed number counts once.
func (d *device) count(sent item) bool {
	if sent.seq == 0 || sent.seq <= d.last {
		return false
	}
	if d.first == 0 {
		d.first = sent.seq - uint64(sent.count) + 1
	}
	d.last = sent.seq
	d.sent += uint64(sent.count)
	return true
}

// renumber starts the numbering after n, with all counts at zero.
func (d *device) renumber(n uint64) {
	d.seq, d.first, d.last, d.sent = n, 0, 0, 0
	d.swapped, d.slow, d.replayableAfter = nil, false, 0
}
