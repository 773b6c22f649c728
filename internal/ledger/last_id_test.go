package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const idSteps = "ielrho" // all steps of a model of one client

const (
	withID    = 'i' // a message with an id
	emptied   = 'e' // a message with an empty id
	plain     = 'l' // a message without an id
	lost      = 'r' // a message that is lost
	heartbeat = 'h' // a heartbeat that resets the id
	outage    = 'o'
)

// An idModel is the expected record of a client over several streams.
type idModel struct {
	spans    []Span
	resets   uint64
	noIDs    uint64
	lost     uint64 // lost messages between two messages of one stream, or of successive streams that resumed
	findings []Finding
}

func modelOf(steps []byte) (m idModel) {
	type message struct {
		number uint64
		span   int
	}
	var received []message
	var number uint64
	id, event, resetAfter, at := "none", "", uint64(0), Instant(0)
	highest := func() uint64 {
		if len(received) == 0 {
			return 0
		}
		return received[len(received)-1].number
	}
	reset := func(by string, when Instant) {
		if id == "received" {
			id, event, resetAfter, at = "reset", by, highest(), when
		}
	}
	m.spans = []Span{{}}
	for i, step := range steps {
		if step == withID || step == emptied || step == plain || step == lost {
			number++
		}
		switch step {
		case withID:
			id = "received"
		case emptied:
			reset(fmt.Sprint("message ", number), stepAt(i))
		case heartbeat:
			reset("heartbeat", stepAt(i))
		case outage:
			m.spans = append(m.spans, Span{})
			hasMessage := len(received) > 0
			m.spans[len(m.spans)-1].Resumed = id == "received" || id == "reset" && hasMessage
			if id == "reset" && hasMessage {
				m.resets++
				m.findings = append(m.findings, Finding{Kind: KindIDReset, From: resetAfter, At: at, Note: event})
			}
			if id == "none" && hasMessage {
				m.noIDs++
				m.findings = append(m.findings, Finding{Kind: KindNoID, At: stepAt(i) + 2})
			}
		}
		if step == withID || step == emptied || step == plain {
			last := len(m.spans) - 1
			received = append(received, message{number, last})
			if m.spans[last].First == 0 {
				m.spans[last].First = number
			}
			m.spans[last].Last = number
		}
	}
	for i := 1; i < len(received); i++ {
		before, after, resumed := received[i-1], received[i], true
		for span := before.span + 1; span <= after.span; span++ {
			resumed = resumed && m.spans[span].Resumed
		}
		if resumed {
			m.lost += after.number - before.number - 1
		}
	}
	return m
}

func stepAt(i int) Instant { return Instant(i+1) * 10 }

func playIDs(steps []byte) *Ledger {
	l := openLedger(&Config{Counting: Numbered, Published: true, ClientEnds: true, Resumes: true, Interval: time.Second})
	var number uint64
	for i, step := range steps {
		at := stepAt(i)
		switch step {
		case withID:
			l.IDReceived()
		case emptied:
			l.IDReset(at, fmt.Sprint("message ", number+1))
		case heartbeat:
			l.IDReset(at, "heartbeat")
		case outage:
			reconnect(l, at, at+1, at+2)
		}
		switch step {
		case withID, emptied, plain:
			number++
			l.Delivered(&Delivery{At: at, Number: number})
		case lost:
			number++
		}
	}
	return l
}

func checkIDs(t *testing.T, steps []byte) {
	t.Helper()
	m, l := modelOf(steps), playIDs(steps)
	require.Equal(t, m.lost, l.Sums().Lost, "lost in %q", steps)
	r := l.Record()
	require.Len(t, r.Spans, len(m.spans), "%q", steps)
	for i, span := range r.Spans {
		want := m.spans[i]
		require.Equal(t, want, Span{Resumed: span.Resumed, First: span.First, Last: span.Last}, "stream %d of %q", i, steps)
	}
	require.Equal(t, [2]uint64{m.resets, m.noIDs}, [2]uint64{r.IDResets, r.NoIDs}, "%q", steps)
	if len(m.findings) <= maxFindings {
		require.Equal(t, m.findings, r.Findings, "%q", steps)
	}
}

// The test tries every sequence of up to six steps.
func TestReconnectsAgreeWithTheModelOfIDs(t *testing.T) {
	t.Parallel()
	maxSteps := 6
	if testing.Short() {
		maxSteps = 4
	}
	steps := make([]byte, 0, maxSteps)
	var extend func()
	extend = func() {
		checkIDs(t, steps)
		if len(steps) == maxSteps {
			return
		}
		for _, step := range []byte(idSteps) {
			steps = append(steps, step)
			extend()
			steps = steps[:len(steps)-1]
		}
	}
	extend()
}
