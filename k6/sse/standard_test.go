package sse

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The cases of the HTML standard that other suites of event streams have, web-platform-tests' eventsource/ before all, in
// tables of our own. What concerns the format alone is in eventstream.

// Section 9.2.5: what is no UTF-8 becomes U+FFFD as a TextDecoder makes it, in all that a script or the server is told.
func TestStandardDecodes(t *testing.T) {
	t.Parallel()
	const euro = "\xE2\x82" // lacks its end
	events := "retry: 1\nid: i" + euro + "\nevent: e" + euro + "\n: c" + euro + "\ndata: d" + euro + "\xFF\n\n"
	v := newVU(t)
	v.set("url", serve(t, func(p *peer) {
		p.say(streamHead + events)
		if id := p.req.Header.Get("Last-Event-ID"); id != "" {
			p.say(fmt.Sprintf("data: %s\n\n", id))
			p.hold()
		}
	}))
	require.Equal(t, "d\uFFFD\uFFFD i\uFFFD c\uFFFD d\uFFFD\uFFFD i\uFFFD c\uFFFD i\uFFFD", v.log(`
		const s = new EventSource(url);
		s.addEventListener("e\uFFFD", (e) => log.push(e.data, e.lastEventId, e.comment));
		s.onmessage = (e) => { log.push(e.data); s.close(); };
	`))
	require.Equal(t, "i\uFFFD|e\uFFFD|d\uFFFD\uFFFD|c\uFFFD", v.log(`
		sse.open(url, (c) => c.on("event", (e) => { log.push([e.id, e.name, e.data, e.comment].join("|")); }));`))
}
