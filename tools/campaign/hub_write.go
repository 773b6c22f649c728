package main

import (
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// writeFaulty writes a message, and applies the fault to it.
func (f *hubStream) writeFaulty(l *message) error {
	act, corruption := "", ""
	if f.client.n >= 0 && !f.client.ended && f.fault.matches(f.client.ID, l) {
		act = f.fault.Action
	}
	switch act {
	case hubMuted:
		f.muted = true
		return nil
	case fakeservice.ActClose, fakeservice.ActReset, fakeservice.ActTruncate:
		f.client.ended = true // the fault ends one stream per client
	case hubGap:
		if f.Gap == "event" {
			if err := f.writeBlock("event: reset\ndata: \n\n", frame{kind: frameGap}); err != nil {
				return err
			}
		}
	case corruptNumber, corruptShift, corruptMarker, corruptTime, corruptSum, corruptTruncated:
		corruption = act
	}
	text := func() string { text, _, _ := f.block(l, "", 0); return text }
	return f.Apply(act, f.fault.Wait, text, func() error { return f.writeMessage(l, corruption) })
}

// writeMessage writes a message.
func (f *hubStream) writeMessage(l *message, corruption string) error {
	text, reads, valid := f.block(l, corruption, f.fault.Offset)
	kind := frameMessage
	switch {
	case valid && (l.topic == f.client.topic || !f.Marked): // a marker is of one topic
	case valid, corruption == corruptMarker: // it looks like one of another topic, whose markers begin alike
		kind = frameOtherTopic
	default:
		kind = frameOther
	}
	return f.writeBlock(text, frame{kind: kind, number: l.number, reads: reads, sent: l.got})
}

// writeBlock writes a block and records it.
func (f *hubStream) writeBlock(text string, fr frame) error {
	fr.at = time.Now()
	f.record(fr)
	return f.Write(text)
}

func (f *hubStream) record(fr frame) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.replaced {
		return
	}
	fr.span = f.span
	f.client.frames = append(f.client.frames, fr)
}
