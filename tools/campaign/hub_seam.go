package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// What a fault does with the messages that a client has missed when it reconnects, and the id from which the stream
// continues.
const (
	seamFirst   = "first"   // the first of them does not come
	seamLast    = "last"    // nor does the last
	seamFurther = "further" // the stream continues from another id, two messages later
	seamNothing = "nothing" // none comes
	seamTold    = "told"    // likewise, and the service announces missing messages
	seamTwice   = "twice"   // the last comes twice
	seamSwap    = "swap"    // the first two come in another order
	seamStart   = "start"   // all that was ever published comes
)

// seam returns what the fault does with a stream that resumes now. half: the one before was never closed.
func (f *hubFault) seam(id string, half bool) string {
	if !f.Meant(id) || f.Only != "" && (f.Only == "half") != half {
		return ""
	}
	return f.Seam
}

// seamed returns the first messages of a stream that resumes behind the letter of that index. With the lock.
func (f *feed) seamed(behind int, half bool) []*letter {
	all := func(letters []*letter) []*letter {
		return slices.DeleteFunc(slices.Clone(letters), func(l *letter) bool { return !l.delivered })
	}
	d := f.listener
	missed := all(d.topic.letters[behind:])
	came := slices.Clone(missed)
	switch n := len(missed); f.fault.seam(d.ID, half) {
	case seamFirst:
		came = came[min(1, n):]
	case seamLast:
		came = came[:max(n-1, 0)]
	case seamFurther:
		came = came[min(2, n):]
	case seamNothing, seamTold:
		came = nil
	case seamTwice:
		came = append(came, came[max(n-1, 0):]...)
	case seamSwap:
		if n > 1 {
			came[0], came[1] = came[1], came[0]
		}
	case seamStart:
		came = all(d.topic.letters)
	}
	for _, l := range missed {
		if !slices.Contains(came, l) {
			if d.dropped == nil {
				d.dropped = map[int]int{}
			}
			d.dropped[l.number] = f.span
		}
	}
	return came
}

// announces notes whether the stream will say that messages are missing, and reports whether a header says so.
func (f *feed) announces(last string) bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	d := f.listener
	byHeader := f.Gap == "header"
	falsely := byHeader && f.fault.Action == hubGap && f.fault.Meant(d.ID) // where nothing is missing
	resumes := last != "" && d.n >= 0 && f.Gap != ""
	f.announcesGap = resumes && (falsely || f.fault.seam(d.ID, d.feed != nil) == seamTold)
	return f.announcesGap && byHeader
}

// tell announces missing messages. With the lock.
func (f *feed) tell() {
	switch {
	case !f.announcesGap:
	case f.Gap == "header":
		f.listener.frames = append(f.listener.frames, frame{kind: frameGap, at: time.Now(), span: f.span})
	default:
		f.put(&item{text: "event: reset\ndata: \n\n", kind: frameGap, due: time.Now()})
	}
}

// goesOnBy returns the id by which a client resumes behind a letter.
func (f *feed) goesOnBy(l *letter) string {
	if f.Resume == "data" {
		return fmt.Sprintf("n%d", l.index)
	}
	return f.idOf(l, fmt.Sprint(l.number))
}

// last returns the number of the letter behind which a client resumes, 0 if it is unknown and -1 if it has none.
func (t *hubTopic) last(f *feed, last string) int {
	switch {
	case f.Resume != "data" && (f.IDs == hubConstant || f.IDs == hubNone):
		return 0
	case last == "" && f.resumesByID() && f.Heartbeat == "after a line": // it had reset the id
		return 0
	case last == "":
		return -1
	}
	for _, l := range t.letters {
		if f.goesOnBy(l) == last {
			return l.number
		}
	}
	return 0
}

// readUpTo records what the client had read of a span when it came back: up to the message of that number, and none behind it.
// Where messages come more than once, that may also have been an earlier copy.
func (d *listener) readUpTo(span, number int, again bool) {
	if span < 0 || number == 0 || d.Spans[span].How == fakeservice.EndInOrder {
		return
	}
	last := -1
	for i := range d.frames {
		f := &d.frames[i]
		f.unsure = f.unsure || again && last >= 0 && f.span == span
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
	d.Spans[span].Known = true
}
