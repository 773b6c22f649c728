package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// Effects of a fault on the messages that a client missed when it reconnects, and on the id from which the stream
// continues.
const (
	seamLosesFirst  = "first"   // the first message is missing
	seamLosesLast   = "last"    // the last message is missing
	seamSkipsTwo    = "further" // the stream continues from another id, two messages later
	seamLosesAll    = "nothing" // all messages are missing
	seamAnnounced   = "told"    // all messages are missing, and the gap is announced
	seamRepeatsLast = "twice"   // the last message is repeated
	seamSwapsFirst  = "swap"    // the first two messages are swapped
	seamReplaysAll  = "start"   // all messages ever published are sent
)

// seam returns the effect of the fault on a stream that resumes. half: the client never closed the previous stream.
func (f *hubFault) seam(id string, half bool) string {
	if !f.Matches(id) || f.StreamsOf != "" && (f.StreamsOf == "half") != half {
		return ""
	}
	return f.Seam
}

// resumedMessages returns the first messages of a stream that resumes at an index. The caller holds the lock.
func (f *hubStream) resumedMessages(position int, half bool) []*message {
	all := func(letters []*message) []*message {
		return slices.DeleteFunc(slices.Clone(letters), func(l *message) bool { return !l.delivered })
	}
	d := f.client
	missed := all(d.topic.messages[position:])
	messages := slices.Clone(missed)
	switch n := len(missed); f.fault.seam(d.ID, half) {
	case seamLosesFirst:
		messages = messages[min(1, n):]
	case seamLosesLast:
		messages = messages[:max(n-1, 0)]
	case seamSkipsTwo:
		messages = messages[min(2, n):]
	case seamLosesAll, seamAnnounced:
		messages = nil
	case seamRepeatsLast:
		messages = append(messages, messages[max(n-1, 0):]...)
	case seamSwapsFirst:
		if n > 1 {
			messages[0], messages[1] = messages[1], messages[0]
		}
	case seamReplaysAll:
		messages = all(d.topic.messages)
	}
	for _, l := range missed {
		if !slices.Contains(messages, l) {
			if d.dropped == nil {
				d.dropped = map[int]int{}
			}
			d.dropped[l.number] = f.span
		}
	}
	return messages
}

// announces records whether the stream will state that messages are missing, and reports whether a header states it.
func (f *hubStream) announces(last string) bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	d := f.client
	byHeader := f.Gap == "header"
	falsely := byHeader && f.fault.Action == hubGap && f.fault.Matches(d.ID) // although nothing is missing
	resumes := last != "" && d.n >= 0 && f.Gap != ""
	f.announcesGap = resumes && (falsely || f.fault.seam(d.ID, d.stream != nil) == seamAnnounced)
	return f.announcesGap && byHeader
}

// announceGap announces missing messages. The caller holds the lock.
func (f *hubStream) announceGap() {
	switch {
	case !f.announcesGap:
	case f.Gap == "header":
		f.client.frames = append(f.client.frames, frame{kind: frameGap, at: time.Now(), span: f.span})
	default:
		f.enqueueText("event: reset\ndata: \n\n", frameGap)
	}
}

// resumeID returns the id from which a client resumes after a message.
func (f *hubStream) resumeID(l *message) string {
	if f.Resume == "data" {
		return fmt.Sprintf("n%d", l.index)
	}
	return f.idOf(l, fmt.Sprint(l.number))
}

// last returns the number of the message after which a client resumes: 0 if it is unknown, -1 if there is none.
func (t *hubTopic) last(f *hubStream, last string) int {
	switch {
	case f.Resume != "data" && (f.IDs == hubConstant || f.IDs == hubNone):
		return 0
	case last == "" && f.resumesByID() && f.Heartbeat == "after a line": // the heartbeat had reset the id
		return 0
	case last == "":
		return -1
	}
	for _, l := range t.messages {
		if f.resumeID(l) == last {
			return l.number
		}
	}
	return 0
}

// readUpTo records that a client, when it reconnected, had read a span up to the message with that number. With
// repeated, that may have been an earlier copy of the message.
func (d *hubClient) readUpTo(span, number int, repeated bool) {
	if span < 0 || number == 0 || d.Spans[span].EndReason == fakeservice.EndInOrder {
		return
	}
	last := -1
	for i := range d.frames {
		f := &d.frames[i]
		f.unsure = f.unsure || repeated && last >= 0 && f.span == span
		if f.kind == frameMessage && f.number == number {
			last = i
		}
	}
	read := d.frames[:last+1]
	for _, f := range d.frames[last+1:] {
		if f.kind != frameMessage || f.span < span {
			f.unsure = f.unsure || f.span == span
			read = append(read, f)
		}
	}
	d.frames = read
	d.Spans[span].Reported = true
}
