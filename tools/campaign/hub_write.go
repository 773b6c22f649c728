package main

import (
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

func (f *hubStream) writeFaulty(m *message) error {
	action, corruption := "", ""
	if f.client.n >= 0 && !f.client.endedByFault && f.fault.matches(f.client.ID, m) {
		action = f.fault.Action
	}
	switch action {
	case hubMuted:
		f.muted = true
		return nil
	case fakeservice.ActClose, fakeservice.ActReset, fakeservice.ActTruncate:
		f.client.endedByFault = true // the fault ends one stream per client
	case hubGap:
		if f.Gap == "event" {
			if err := f.writeBlock("event: reset\ndata: \n\n", frame{kind: frameGap}); err != nil {
				return err
			}
		}
	case corruptNumber, corruptShift, corruptMarker, corruptTime, corruptSum, corruptTruncated:
		corruption = action
	}
	text := func() string { text, _, _ := f.block(m, "", 0); return text }
	return f.Apply(action, f.fault.Wait, text, func() error { return f.writeMessage(m, corruption) })
}

// writeMessage writes a message with a corruption, and records what the client will read.
func (f *hubStream) writeMessage(m *message, corruption string) error {
	text, seq, belongs := f.block(m, corruption, f.fault.Offset)
	kind := frameMessage
	switch {
	case belongs && (m.topic == f.client.topic || !f.HasMarker): // a marker belongs to one topic
	case belongs, corruption == corruptMarker: // the markers of all topics have the same prefix
		kind = frameOtherTopic
	default:
		kind = frameOther
	}
	return f.writeBlock(text, frame{kind: kind, number: m.number, seq: seq, receivedAt: m.receivedAt})
}

func (f *hubStream) writeBlock(text string, fr frame) error {
	fr.at = time.Now()
	f.record(fr)
	return f.Write(text)
}

// record records a frame, unless the client has left the stream for another one.
func (f *hubStream) record(fr frame) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.replaced {
		return
	}
	fr.span = f.span
	f.client.frames = append(f.client.frames, fr)
}
