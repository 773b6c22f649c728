package sse

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEventSourceReadsAStream(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	v.set("url", serveText(t, streamHead+"id: 1\ndata: a\n\nevent: x\ndata: b\n\n"))
	got := v.log(`
		const s = new EventSource(url + "/e?id=dev1", { reconnect: false });
		log.push(s.readyState, s.url === url + "/e?id=dev1", s.withCredentials);
		s.onopen = (e) => log.push(e.type, s.readyState, s.status, e.target === s);
		s.onmessage = (e) => log.push(e.data, e.lastEventId, e.origin === url);
		s.addEventListener("x", (e) => log.push(e.type, e.data, e.lastEventId));
		s.onerror = (e) => log.push(e.type, e.reason, e.willReconnect, s.readyState);
	`)
	require.Equal(t, "0 true false open 1 200 true a 1 true x b 1 error server false 2", got)
}
