package sse

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lateHandler returns a handler that sends the last event ID of the request in its first event, whose own id is 1,
// and sets a reconnection time in ms.
func lateHandler(retryMS int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		say(w, fmt.Sprintf("retry: %d\nid: 1\ndata: behind %s\n\n", retryMS, r.Header.Get("Last-Event-ID")))
		<-r.Context().Done()
	}
}

// A dropped source reconnects behind the last event, at once if requested, whatever the server's `retry:`.
func TestDroppedSourceReconnects(t *testing.T) {
	over(t, allWays, func(t *testing.T, w way) {
		for _, atOnce := range []bool{false, true} {
			v, retry := w.vu(t), 100
			if atOnce {
				retry = 3600_000
			}
			v.set("atOnce", atOnce)
			back := make(chan struct{}, 1)
			v.set("isBack", func() { <-back })
			v.set("url", v.serveHTTP(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Last-Event-ID") != "" {
					back <- struct{}{}
				}
				lateHandler(retry)(w, r)
			}))
			begun := time.Now()
			require.Equal(t, "behind  true 0 false cut true behind 1", v.log(`
				const s = new EventSource(url);
				s.onerror = (e) => log.push(e.reason, e.willReconnect && (e.retryMs === 0) === atOnce);
				s.onmessage = (e) => {
					log.push(e.data);
					if (e.data !== "behind ") { s.close(); return; }
					log.push(s.drop(atOnce), s.readyState);
					isBack(); // though the script has not heard of the end
					log.push(s.drop(atOnce));
				};
			`))
			if !atOnce {
				require.GreaterOrEqual(t, time.Since(begun), 100*time.Millisecond, "the reconnection time")
			}
		}
	})
}

// Only an open stream can be dropped, and one without reconnect stays closed.
func TestDropNeedsAnOpenStream(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	v.set("url", v.serveHTTP(lateHandler(1)))
	require.Equal(t, "false true cut false false", v.log(`
		const s = new EventSource(url, { reconnect: false });
		log.push(s.drop(true));
		s.onmessage = () => log.push(s.drop(true));
		s.onerror = (e) => log.push(e.reason, e.willReconnect, s.drop(true));
	`))
}
