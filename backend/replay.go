package main

import "time"

// Limits of the messages kept for resumes, over all ids.
const (
	maxKeptBytes   = 64 << 20
	maxKeptEntries = 1 << 18
)

// A replayLog keeps sent messages for RESUME_WINDOW, for clients that resume.
// Each id has its own list. The replayLog is the queue over all lists, oldest
// first, and limits their age, bytes and number. Noops are not kept, because
// they can be generated again.
type replayLog struct {
	queue []keptEntry
	bytes int
}

type keptEntry struct {
	d   *device
	seq uint64
	at  time.Duration
	msg *keptBody
}

// A keptMessage is a message in the list of its id.
type keptMessage struct {
	seq  uint64
	body *keptBody
}

// A keptBody is a message, shared by all ids of a broadcast.
type keptBody struct {
	data []byte
	refs int
}

// keep stores the message with the id's latest number.
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

// expire drops the messages that are older than a time limit.
func (l *replayLog) expire(limit time.Duration) {
	for len(l.queue) > 0 && l.queue[0].at < limit {
		l.dropOldest()
	}
	if len(l.queue) == 0 {
		l.queue = nil
	}
}

// dropOldest drops the oldest message. Its id can be replayed from the number
// after it only.
func (l *replayLog) dropOldest() {
	e := l.queue[0]
	l.queue[0] = keptEntry{}
	l.queue = l.queue[1:]
	if len(e.d.messages) > 0 && e.d.messages[0].body == e.msg && e.d.messages[0].seq == e.seq {
		e.d.messages[0] = keptMessage{}
		e.d.messages = e.d.messages[1:]
		e.d.replayableAfter = e.seq
		l.unref(e.msg)
	}
}

// forget drops all messages of an id. Their entries in the queue become stale.
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
