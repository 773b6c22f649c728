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
		sendEvents(w, fmt.Sprintf("retry: %d\nid: 1\ndata: behind %s\n\n", retryMS, r.Header.Get("Last-Event-ID")))
		<-r.Context().Done()
	}
}

// An immediate reconnect ignores the reconnection time of the server.
func TestDroppedSourceReconnects(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		for _, immediate := range []bool{false, true} {
			v, retry := w.vu(t), 100
			if immediate {
				retry = 3600_000
			}
			v.set("immediate", immediate)
			reconnected := make(chan struct{}, 1)
			v.set("awaitReconnect", func() { <-reconnected })
			v.set("url", v.serveHTTP(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Last-Event-ID") != "" {
					reconnected <- struct{}{}
				}
				lateHandler(retry)(w, r)
			}))
			start := time.Now()
			require.Equal(t, "behind  true 0 false cut true behind 1", v.log(`
				const s = new EventSource(url);
				s.onerror = (e) => log.push(e.reason, e.willReconnect && (e.retryMs === 0) === immediate);
				s.onmessage = (e) => {
					log.push(e.data);
					if (e.data !== "behind ") { s.close(); return; }
					log.push(s.drop(immediate), s.readyState);
					awaitReconnect(); // before the event loop reports the end
					log.push(s.drop(immediate));
				};
			`))
			if !immediate {
				require.GreaterOrEqual(t, time.Since(start), 100*time.Millisecond, "the stream must wait for the reconnection time")
			}
		}
	})
}

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
