package sseclient

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// An endlessStream is a transport that repeats a text and fills the buffer at each read.
type endlessStream struct {
	transport
	text  string
	turns int // turns without errNotReady
}

func (w *endlessStream) Read(p []byte) (int, error) {
	if w.turns == 0 {
		return 0, errNotReady
	}
	w.turns--
	n := 0
	for n+len(w.text) <= len(p) {
		n += copy(p[n:], w.text)
	}
	return n, nil
}

// quietStream returns a stream that only counts events, to measure the cost of reading.
func quietStream(on Callbacks, events *int) *Stream {
	on.Event = func(time.Time, *eventstream.Event) { *events++ }
	s := new(Client).Group(context.Background()).Add(new(Options), on)
	s.parser.Reset(&s.body, eventstream.DefaultLimit)
	return s
}

// blocks are callbacks for blocks and comments.
var blocks = Callbacks{Block: func(time.Time, *eventstream.Block) {}, Comment: func(time.Time, []byte) {}}

const noop = ": sent=1763683200123456\nid: 1234\ndata: 0\n\n"

// Reading allocates nothing, even with callbacks for blocks.
func TestReadingAllocatesNothing(t *testing.T) {
	for name, on := range map[string]Callbacks{"events": {}, "blocks": blocks} {
		events := 0
		s, buf, block := quietStream(on, &events), make([]byte, 4096), &eventstream.Block{}
		w := &endlessStream{text: noop + ":\n\n" + "event: ping\n\n" + "id: 1\n\n" + "retry: 100\n\n"}
		s.body = body{idleMark: idleMark{transport: w}}
		turn := func() { w.turns = 1; s.turn(buf, block) }
		for range 10 {
			turn()
		}
		require.Zero(t, testing.AllocsPerRun(100, turn), name)
		require.Positive(t, events, name)
	}
}

// BenchmarkTurn measures one event in the poller without the kernel: read, parse, report, count.
func BenchmarkTurn(b *testing.B) {
	for name, tt := range map[string]struct {
		on   Callbacks
		text string
	}{
		"noop":             {Callbacks{}, noop},
		"noop, blocks":     {blocks, noop},
		"heartbeat, event": {Callbacks{}, "event: ping\n\n" + noop},
		"heartbeat, block": {blocks, "event: ping\n\n" + noop},
	} {
		b.Run(name, func(b *testing.B) {
			events := 0
			s, buf, block := quietStream(tt.on, &events), make([]byte, 4096), &eventstream.Block{}
			w := &endlessStream{text: tt.text}
			s.body = body{idleMark: idleMark{transport: w}}
			b.ReportAllocs()
			for b.Loop() {
				w.turns = 1
				s.turn(buf, block)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
		})
	}
}
