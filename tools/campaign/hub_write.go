package main

import (
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// broken is how a stream ended that could not be written to, or that the fault has ended.
func (f *feed) broken() string {
	switch f.fault.Action {
	case fakeservice.ActReset:
		return fakeservice.EndReset
	case fakeservice.ActClose, fakeservice.ActTruncate:
		return fakeservice.EndInOrder
	}
	return fakeservice.EndClient
}

// item writes an item, and does with it what the fault wants.
func (f *feed) item(i *item) error {
	if f.fault.Action != fakeservice.ActDelay {
		f.Late.Record(i.due)
	}
	switch l := i.letter; {
	case f.muted:
		return nil
	case l == nil:
		return f.show(i.text, frame{kind: i.kind})
	case f.listener.n >= 0 && f.fault.at(f.listener.ID, l):
		return f.strike(l)
	default:
		return f.letter(l, "")
	}
}

// strike does to a message what the fault wants.
func (f *feed) strike(l *letter) error {
	if f.listener.ended { // once each
		return f.letter(l, "")
	}
	switch act := f.fault.Action; act {
	case fakeservice.ActLose:
		return nil
	case fakeservice.ActRepeat:
		if err := f.letter(l, ""); err != nil {
			return err
		}
	case hubAgain:
		defer func() { f.repeats = append(f.repeats, l) }()
	case fakeservice.ActHold:
		f.delayed = append(f.delayed, l)
		return nil
	case fakeservice.ActDelay:
		time.Sleep(f.fault.Wait)
	case hubMute:
		f.muted = true
		return nil
	case fakeservice.ActClose, fakeservice.ActReset:
		f.listener.ended = true
		return fakeservice.ErrOver
	case fakeservice.ActTruncate:
		text, _, _ := f.block(l, "", 0)
		_ = f.Write(text[:len(text)/2])
		f.listener.ended = true
		return fakeservice.ErrOver
	case hubGap:
		if f.Gap == "event" {
			if err := f.show("event: reset\ndata: \n\n", frame{kind: frameGap}); err != nil {
				return err
			}
		}
	case harmNumber, harmShift, harmMarker, harmClock, harmSum, harmCut:
		return f.letter(l, act)
	}
	return f.letter(l, "")
}

// letter writes a message, and behind it those that waited for it.
func (f *feed) letter(l *letter, harm string) error {
	text, reads, ours := f.block(l, harm, f.fault.By)
	kind := frameMessage
	switch {
	case ours && (l.topic == f.listener.topic || !f.Marked): // a marker is of one topic
	case ours, harm == harmMarker: // it looks like one of another topic, whose markers begin alike
		kind = frameStray
	default:
		kind = frameOther
	}
	sent := l.got
	if err := f.show(text, frame{kind: kind, number: l.number, reads: reads, sent: sent}); err != nil {
		return err
	}
	behind := slices.Concat(f.delayed, f.repeats)
	f.delayed, f.repeats = nil, nil
	for _, one := range behind {
		if err := f.letter(one, ""); err != nil {
			return err
		}
	}
	return nil
}

// show writes a block and notes it.
func (f *feed) show(text string, fr frame) error {
	fr.at = time.Now()
	f.note(fr)
	return f.Write(text)
}

func (f *feed) note(fr frame) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.replaced {
		return
	}
	fr.span = f.span
	f.listener.frames = append(f.listener.frames, fr)
}
