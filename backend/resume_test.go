package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// After a resume, all noops and messages after the last received number arrive in order. Then the stream continues.
func TestResumeReplays(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=50ms")
	c := s.open("a")
	require.Equal(t, []uint64{1, 2}, c.numbers(2))
	c.conn.Close()
	eventually(t, "the stream has ended", func() bool { return s.hub.openStreams() == 0 })
	status, _, body := s.request("POST", "/event/send?id=a&event=note", "kept")
	require.Equal(t, 202, status)
	require.Contains(t, body, `"kept":1`)
	var seq uint64
	eventually(t, "the numbering continues", func() bool {
		s.hub.call(func() { seq = s.hub.devices["a"].seq })
		return seq >= 7
	})
	c = s.open("a", resumeAfter(2))
	messages := 0
	for n := uint64(3); n <= seq+3; n++ {
		e := c.next()
		require.Equal(t, n, e.id)
		if e.name == "note" {
			require.Equal(t, "kept", e.data)
			messages++
		} else {
			require.Equal(t, "0", e.data)
		}
	}
	require.Equal(t, 1, messages)
	row := s.disconnect("a")
	require.Equal(t, uint32(2), row.Streams)
	require.Equal(t, uint64(1), row.First)
	require.Equal(t, row.Last, row.Sent, "a replayed number must count once")
	events, err := c.readAll()
	require.NoError(t, err)
	require.Equal(t, row.Last, seq+3+uint64(len(events)))
}

// A connect with Last-Event-ID replaces an open stream of the id. Without the header, the connect is refused. A client
// that sends an earlier number than its last one receives the later numbers again, and the ledger counts them once.
func TestTakeover(t *testing.T) {
	t.Parallel()
	s := startTest(t)
	old := s.open("a")
	require.Equal(t, []uint64{1, 2}, old.numbers(2))
	status, _, _ := s.request("GET", "/event/connect?id=a", "")
	require.Equal(t, 409, status)
	c := s.open("a", resumeAfter(1))
	_, _ = old.readAll()
	require.Equal(t, []uint64{2, 3, 4}, c.numbers(3))
	require.Equal(t, 1, s.hub.openStreams())
	row := s.disconnect("a")
	require.Equal(t, row.Last, row.Sent)
	_, _, text := s.request("GET", "/metrics", "")
	require.Contains(t, text, `backend_streams_closed_total{reason="replaced"} 1`)
	require.Contains(t, text, "backend_resumed_total 1\n")
}

func TestNumbering(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		flags  []string
		before func(*testService) // opens earlier streams of the id
		header string
		first  uint64 // first number of the stream that is opened afterwards
	}{
		{name: "no header", first: 1},
		{name: "empty header", header: "Last-Event-ID:", first: 1},
		{name: "server was restarted", header: resumeAfter(41), first: 42},
		{name: "nothing received", header: resumeAfter(0), first: 1},
		{name: "above the last number", before: func(s *testService) { s.open("a").numbers(2) }, header: resumeAfter(100), first: 101},
		{name: "no header after forcedisconnect", before: func(s *testService) { s.open("a").numbers(2); s.disconnect("a") }, first: 1},
		{name: "no header within the window", before: func(s *testService) { s.open("a").numbers(2); s.drop("a") }, first: 1},
		{name: "resumed within the window", before: func(s *testService) { s.open("a").numbers(2); s.drop("a") }, header: resumeAfter(1), first: 2},
		{name: "resumed from the start", before: func(s *testService) { s.open("a").numbers(2); s.drop("a") }, header: resumeAfter(0), first: 1},
		{name: "window off", flags: []string{"--resume-window=0"}, header: resumeAfter(1), first: 3,
			before: func(s *testService) {
				s.open("a").numbers(1)
				s.hub.call(func() { s.hub.devices["a"].seq = 2 })
				s.drop("a")
			}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startTest(t, append([]string{"--noop-interval=50ms"}, c.flags...)...)
			s.t = t
			if c.before != nil {
				c.before(s)
			}
			var headers []string
			if c.header != "" {
				headers = []string{c.header}
			}
			require.Equal(t, c.first, s.open("a", headers...).next().id)
		})
	}
}

// drop ends the stream of an id as if the client had disconnected.
func (s *testService) drop(id string) {
	s.t.Helper()
	s.hub.call(func() { s.hub.closeStream(s.hub.devices[id], closedByClient) })
	require.Zero(s.t, s.hub.openStreams())
}

// The numbering ends after RESUME_WINDOW. A later stream continues after the last number, so the client sees a gap.
func TestWindowExpires(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=50ms", "--resume-window=200ms")
	s.open("a").numbers(2)
	s.drop("a")
	var seq uint64
	eventually(t, "the numbering ended", func() bool {
		var resumable bool
		s.hub.call(func() { resumable, seq = s.hub.devices["a"].resumable, s.hub.devices["a"].seq })
		return !resumable
	})
	require.GreaterOrEqual(t, seq, uint64(4))
	require.Equal(t, seq+1, s.open("a", resumeAfter(2)).next().id)
	s.drop("a")
	require.Greater(t, s.open("a", resumeAfter(2)).next().id, seq, "numbers of an ended numbering must not be replayed")
}

// A replay may have more frames than the pending limit, but at most maxReplay.
func TestLongReplay(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=1h", "--max-pending=4")
	s.open("a")
	s.drop("a")
	s.hub.call(func() { s.hub.devices["a"].seq = 5000 })
	c := s.open("a", resumeAfter(10))
	require.Equal(t, numbersFrom(5000-maxReplay+1, 5000), c.numbers(maxReplay))
	require.Equal(t, uint64(maxReplay), s.disconnect("a").Sent)
}

// The size of the replay log is limited. A number whose message was dropped is never replayed with other content.
func TestReplayBounds(t *testing.T) {
	t.Parallel()
	var l replayLog
	d := &device{}
	for range 100 {
		d.seq++
		l.keep(d, &keptBody{data: make([]byte, 1<<20)}, time.Duration(d.seq))
	}
	require.LessOrEqual(t, l.bytes, maxKeptBytes)
	require.Equal(t, uint64(36), d.replayableAfter)
	require.Equal(t, uint64(37), d.messages[0].seq)
	l.expire(91)
	require.Equal(t, uint64(90), d.replayableAfter)
	l.forget(d)
	require.Zero(t, l.bytes)
	l.expire(1000)
	require.Empty(t, l.queue)
}

// Each id has its own numbering. After forcedisconnect, messages to the id are refused.
func TestMessages(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=1h")
	a, b := s.open("a"), s.open("b")
	status, _, body := s.request("POST", "/event/send?id=a&event=note", "one\ntwo")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"id":"a","number":1,"delivered":1,"kept":0}`, body)
	status, _, body = s.request("POST", "/event/broadcast", "all")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"delivered":2,"kept":0}`, body)
	e := a.next()
	require.Equal(t, event{id: 1, name: "note", data: "one\ntwo", sent: e.sent, at: e.at}, e)
	e = a.next()
	require.Equal(t, uint64(2), e.id)
	require.Equal(t, "all", e.data)
	e = b.next()
	require.Equal(t, uint64(1), e.id)
	require.Equal(t, "all", e.data)
	require.Equal(t, uint64(2), s.disconnect("a").Sent)
	status, _, _ = s.request("POST", "/event/send?id=a", "x")
	require.Equal(t, 404, status)
}

// A broadcast that disconnects a slow client ends the numbering of another id, which then leaves its place in the
// wheel.
func TestBroadcastReachesEachIDOnce(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=1h", "--max-connections=2")
	for _, id := range []string{"gone-1", "gone-2"} {
		s.open(id)
		s.drop(id)
	}
	s.open("reader")
	s.open("slow")
	s.hub.call(func() { s.hub.backlogOf(s.hub.devices["slow"], time.Hour).room = 0 }) // no flush before the broadcast
	s.request("POST", "/event/broadcast", "all")
	require.Equal(t, "slow", s.rows("slow")["slow"].Closed)
	var last uint64
	s.hub.call(func() { last = s.hub.devices["slow"].seq })
	require.Equal(t, uint64(1), last)
}

func TestMessageLimits(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=1h")
	c := s.open("a")
	status, _, _ := s.request("POST", "/event/send?id=a", strings.Repeat("x", maxBody))
	require.Equal(t, 200, status)
	require.Len(t, c.next().data, maxBody)
	status, _, _ = s.request("POST", "/event/send?id=a", strings.Repeat("x", maxBody+1))
	require.Equal(t, 413, status)
	status, _, _ = s.request("POST", "/event/broadcast", "\xff")
	require.Equal(t, 400, status)
	require.Equal(t, uint64(1), s.disconnect("a").Last)
}
