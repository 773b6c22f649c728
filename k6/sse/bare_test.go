package sse

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

type bareLog struct {
	mu    sync.Mutex
	text  []string
	ended chan error
}

func (l *bareLog) Event(_ time.Time, e *eventstream.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(e.ID)+"="+string(e.Data))
}

func (l *bareLog) Ended(why error) { l.ended <- why }

func (l *bareLog) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.text, " ")
}

func TestABareStreamIsReadWithoutAVirtualUser(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	server := serve(t, func(p *peer) {
		p.say(streamHead + "id: 1\ndata: a\n\n") // with the head
		for text := range next {
			p.say(text)
		}
	})
	log := &bareLog{ended: make(chan error, 1)}
	_, err := OpenBare(t.Context(), server, 0, log)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return log.all() == "1=a" }, patience, time.Millisecond)
	next <- "id: 2\ndata: b\n\nid: 3\nda"
	next <- "ta: c\n\n"
	require.Eventually(t, func() bool { return log.all() == "1=a 2=b 3=c" }, patience, time.Millisecond)
	close(next)
	require.Error(t, <-log.ended)
}

func TestABareStreamIsClosedOrGivenUp(t *testing.T) {
	t.Parallel()
	server := serve(t, func(p *peer) {
		p.say(streamHead + "data: a\n\n")
		p.hold()
	})
	closed := &bareLog{ended: make(chan error, 1)}
	b, err := OpenBare(t.Context(), server, time.Minute, closed)
	require.NoError(t, err)
	b.Close()
	silent := &bareLog{ended: make(chan error, 1)}
	_, err = OpenBare(t.Context(), server, 50*time.Millisecond, silent)
	require.NoError(t, err)
	require.ErrorIs(t, <-silent.ended, errIdle)
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.wire == nil
	}, patience, time.Millisecond, "the poller closes it")
	require.Empty(t, closed.ended)
}

func TestABareStreamThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	mute := serve(t, func(p *peer) { p.hold() })
	busy := serve(t, func(p *peer) { p.say("HTTP/1.1 503 Busy\r\n\r\n") })
	other := serve(t, func(p *peer) {
		p.say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n")
	})
	for _, url := range []string{mute, busy, other, "http://127.0.0.1:1", "https://127.0.0.1:1", "x"} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := OpenBare(ctx, url, 0, nil)
		cancel()
		require.Error(t, err, url)
	}
}
