package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// newResumingHub returns a hub whose stream was disconnected after 5 s and resumed 2 s later. Nine messages were
// written before the disconnect, and the client read only the first eight.
func newResumingHub(t *testing.T, fault hubFault, vanished bool) (*scenario, *hub) {
	t.Helper()
	sc, h := newTestHub(t, func(number int) []int {
		if number > 9 {
			return nil
		}
		return []int{number}
	})
	sc.Suite, sc.Family, sc.HubFault = "resume", "resume", fault
	sc.Hub.IDs, h.IDs, h.fault, sc.Plan.Reconnect = idsUUID, idsUUID, fault, true
	d := h.byID["h-0"]
	whole := d.Spans[0]
	reconnectedAt := whole.From.Add(7 * time.Second)
	d.Spans = []fakeservice.OpenSpan{{From: whole.From, To: whole.From.Add(5 * time.Second), EndReason: fakeservice.EndClient}, {From: reconnectedAt, To: whole.To, EndReason: fakeservice.EndClient, Resumed: true}}
	f := &hubStream{hub: h, client: d, span: 1}
	lastID := f.resumeID(d.topic.messages[7])
	d.readUpTo(0, d.topic.resumePoint(f, lastID), false)
	published := d.topic.messages
	d.topic.messages = published[:13]
	for _, m := range published {
		m.delivered = true
	}
	messages := f.resumedMessages(d.topic.resumeIndex(f, lastID), vanished)
	d.topic.messages = published
	for _, m := range append(messages, published[13:]...) {
		d.frames = append(d.frames, frame{kind: frameMessage, number: m.number, seq: m.number, receivedAt: m.receivedAt, at: reconnectedAt, span: 1})
	}
	return sc, h
}

func TestExpectedCountsOfReconnects(t *testing.T) {
	for name, c := range map[string]struct {
		fault    hubFault
		vanished bool
		counts   counts
		want     []verdict.Outcome
	}{
		"no fault":                                {hubFault{}, false, counts{}, passes},
		"the first is lost":                       {hubFault{Seam: seamLosesFirst}, false, counts{"missed": exactCount(1), "cuts lost": exactCount(1), "cuts broken": exactCount(1)}, fails},
		"the last is lost":                        {hubFault{Seam: seamLosesLast}, false, counts{"missed": exactCount(1), "cuts lost": exactCount(1), "cuts broken": exactCount(1)}, fails},
		"all are lost":                            {hubFault{Seam: seamLosesAll}, false, counts{"missed": exactCount(5), "cuts lost": exactCount(5), "cuts broken": exactCount(1)}, fails},
		"a gap is announced, and allowed":         {hubFault{Seam: seamAnnounced, Allowed: true}, false, counts{"cuts lost": exactCount(5), "cuts broken": exactCount(1)}, passes},
		"two are skipped":                         {hubFault{Seam: seamSkipsTwo}, false, counts{"missed": exactCount(2), "cuts lost": exactCount(2), "cuts broken": exactCount(1)}, fails},
		"resumed from an earlier id":              {hubFault{Overlap: 2}, false, counts{"duplicated": exactCount(2), "cuts duplicated": exactCount(2), "cuts broken": exactCount(1)}, fails},
		"the last is repeated":                    {hubFault{Seam: seamRepeatsLast}, false, counts{"duplicated": exactCount(1), "cuts duplicated": exactCount(1), "cuts broken": exactCount(1)}, fails},
		"all are replayed":                        {hubFault{Seam: seamReplaysAll}, false, counts{"duplicated": exactCount(8), "cuts duplicated": exactCount(8), "cuts broken": exactCount(1)}, fails},
		"the first two are swapped":               {hubFault{Seam: seamSwapsFirst}, false, counts{"reordered": exactCount(1)}, fails},
		"the fault affects only vanished clients": {hubFault{Seam: seamLosesAll, StreamsOf: "half"}, false, counts{}, passes},
		"the client had vanished":                 {hubFault{Seam: seamLosesAll, StreamsOf: "half"}, true, counts{"missed": exactCount(5), "cuts lost": exactCount(5), "cuts broken": exactCount(1)}, fails},
		"the fault affects another client":        {hubFault{Seam: seamLosesAll, Fault: fakeservice.Fault{Clients: []string{"h-1"}}}, false, counts{}, passes},
	} {
		sc, h := newResumingHub(t, c.fault, c.vanished)
		e := sc.expectHub(h)
		require.Equal(t, c.want, e.Outcomes, name)
		for _, count := range []string{"missed", "duplicated", "reordered", "cuts lost", "cuts duplicated", "cuts broken"} {
			require.Equal(t, c.counts[count], e.Counts[count], "%s: %s", name, count)
		}
	}
}

// A client that reconnects without an id has read no message, and does not resume. A message that was written to its
// previous stream does not count.
func TestReconnectWithoutReadMessages(t *testing.T) {
	_, h := newTestHub(t, func(number int) []int {
		if number == 1 {
			return []int{1}
		}
		return nil
	})
	h.IDs, h.Resume = idsUUID, "header"
	d := h.byID["h-0"]
	d.topic.streams = map[*hubStream]bool{}
	(&hubStream{Stream: &fakeservice.Stream{}, hub: h, client: d}).begin("")
	require.Empty(t, d.frames)
	require.False(t, d.Last().Resumed, "the stream must not resume")
}
