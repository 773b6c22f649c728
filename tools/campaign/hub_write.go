package main

import (
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// applyFault writes a message that the fault concerns.
func (f *hubStream) applyFault(l *message) error {
	if f.client.ended { // once each
		return f.writeMessage(l, "")
	}
	switch act := f.fault.Action; act {
	case fakeservice.ActLose:
		return nil
	case fakeservice.ActRepeat:
		if err := f.writeMessage(l, ""); err != nil {
			return err
		}
	case hubRepeatLater:
		defer func() { f.repeats = append(f.repeats, l) }()
	case fakeservice.ActHold:
		f.delayed = append(f.delayed, l)
		return nil
	case fakeservice.ActDelay:
		time.Sleep(f.fault.Wait)
	case hubMuted:
		f.muted = true
		return nil
	case fakeservice.ActClose, fakeservice.ActReset:
		f.client.ended = true
		return fakeservice.ErrOver
	case fakeservice.ActTruncate:
		text, _, _ := f.block(l, "", 0)
		_ = f.Write(text[:len(text)/2])
		f.client.ended = true
		return fakeservice.ErrOver
	case hubGap:
		if f.Gap == "event" {
			if err := f.writeBlock("event: reset\ndata: \n\n", frame{kind: frameGap}); err != nil {
				return err
			}
		}
	case corruptNumber, corruptShift, corruptMarker, corruptTime, corruptSum, corruptTruncated:
		return f.writeMessage(l, act)
	}
	return f.writeMessage(l, "")
}

// writeMessage writes a message, and then the messages that waited for it.
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
	sent := l.got
	if err := f.writeBlock(text, frame{kind: kind, number: l.number, reads: reads, sent: sent}); err != nil {
		return err
	}
	waiting := slices.Concat(f.delayed, f.repeats)
	f.delayed, f.repeats = nil, nil
	for _, one := range waiting {
		if err := f.writeMessage(one, ""); err != nil {
			return err
		}
	}
	return nil
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
