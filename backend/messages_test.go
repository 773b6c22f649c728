package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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

// A broadcast that disconnects a slow client ends the numbering of another id, which then leaves its place in the wheel.
func TestBroadcastReachesEachIDOnce(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=1h", "--max-connections=2")
	for _, id := range []string{"gone-1", "gone-2"} {
		s.open(id)
		s.drop(id)
	}
	s.open("reader")
	s.open("slow")
	s.hub.call(func() { s.hub.backlogOf(s.hub.devices["slow"], 0).room = 0 })
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
