package main

import "time"

// Limits on the messages that are stored for resumes, for all ids together.
const (
	maxKeptBytes   = 64 << 20
	maxKeptEntries = 1 << 18
)

// A replayLog is the queue of all messages that are stored for resumes (device.messages), oldest first. It limits their
// age, bytes and number. Noops are not stored, because they can be generated again.
type replayLog struct {
	queue []keptEntry
	bytes int
}

type keptEntry struct {
	d    *device
	seq  uint64
	at   time.Duration // elapsed time at which the message was stored
	body *keptBody
}

type keptMessage struct {
	seq  uint64
	body *keptBody
}

// A keptBody is the body of a stored message. All ids that receive a broadcast share one keptBody.
type keptBody struct {
	data []byte
	refs int // number of device.messages lists that contain the body
}

// keep stores a message for an id under the number d.seq. It drops the oldest messages if a limit is exceeded.
func (l *replayLog) keep(d *device, body *keptBody, now time.Duration) {
	if body.refs++; body.refs == 1 {
		l.bytes += len(body.data)
	}
	d.messages = append(d.messages, keptMessage{d.seq, body})
	l.queue = append(l.queue, keptEntry{d, d.seq, now, body})
	for l.bytes > maxKeptBytes || len(l.queue) > maxKeptEntries {
		l.dropOldest()
	}
}

// expire drops the messages that were stored before limit, an elapsed time.
func (l *replayLog) expire(limit time.Duration) {
	for len(l.queue) > 0 && l.queue[0].at < limit {
		l.dropOldest()
	}
	if len(l.queue) == 0 {
		l.queue = nil
	}
}

// dropOldest removes the oldest entry of the queue. If its message is still stored, dropOldest drops the message, and a
// replay for the id then begins after its number.
func (l *replayLog) dropOldest() {
	e := l.queue[0]
	l.queue[0] = keptEntry{}
	l.queue = l.queue[1:]
	if len(e.d.messages) > 0 && e.d.messages[0].body == e.body && e.d.messages[0].seq == e.seq {
		e.d.messages[0] = keptMessage{}
		e.d.messages = e.d.messages[1:]
		e.d.replayableAfter = e.seq
		l.unref(e.body)
	}
}

// forget drops all messages of an id. Their entries remain in the queue until dropOldest removes them, and count toward
// maxKeptEntries until then.
func (l *replayLog) forget(d *device) {
	for _, m := range d.messages {
		l.unref(m.body)
	}
	d.messages = nil
}

func (l *replayLog) unref(body *keptBody) {
	if body.refs--; body.refs == 0 {
		l.bytes -= len(body.data)
	}
}
