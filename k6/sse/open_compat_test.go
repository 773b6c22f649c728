package sse

import (
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"
)

// Without a warning, a script for xk6-sse that checks only the status would pass without an event.
func TestOpenWarnsOnceOfAnotherType(t *testing.T) {
	contentTypeWarning = sync.Once{}
	v := newVU(t)
	logger, entries := test.NewNullLogger()
	v.state.Logger = logger
	v.set("url", serveText(t, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\ndata: 0\n\n"))
	for range 2 {
		v.mustRun(`sse.open(url, {}, () => {})`)
	}
	require.Len(t, entries.AllEntries(), 1)
	require.Contains(t, entries.LastEntry().Message, "Set anyContentType")
}

// Scripts for xk6-sse rely on this behaviour. Some of it requires a parameter of open.
func TestOpenIsCompatibleWithXK6SSE(t *testing.T) {
	t.Parallel()
	const plainHead = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
	huge := strings.Repeat("x", 200)
	for name, tt := range map[string]struct{ params, response, want string }{
		"comments are not events":    {`{}`, streamHead + ": ping\n\ndata: 0\n\n", "open event:||0|"},
		"every block is an event":    {`{ everyBlock: true }`, streamHead + ": ping\n\n:\n\nid: 4\nevent: x\n\n: c\ndata: 0\n\n\n: tail", "open event:|||ping event:||| event:4|x|| event:||0|c error:truncated true"},
		"other type, rejected":       {`{}`, plainHead + "data: 0\n\n", "error:content_type true"},
		"other type, accepted":       {`{ anyContentType: true }`, plainHead + "data: 0\n\n", "open event:||0|"},
		"no type, accepted":          {`{ anyContentType: true }`, "HTTP/1.1 200 OK\r\n\r\ndata: 0\n\n", "open event:||0|"},
		"error status":               {`{ anyContentType: true }`, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "error:status true"},
		"event too long":             {`{ maxEventSize: 100 }`, streamHead + "data: " + huge + "\n\n", "open error:too_long true"},
		"long comment":               {`{ maxEventSize: 100 }`, streamHead + ":" + huge + "\ndata: 0\n\n", "open event:||0|"},
		"empty method means GET":     {`{ method: "" }`, streamHead + "data: 0\n\n", "open event:||0|"},
		"lines after the last event": {`{}`, streamHead + "data: 0\n\n: bye\nretry: 5\nfoo\n", "open event:||0|"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVU(t)
			v.set("url", serve(t, func(p *peer) { p.send(tt.response) }))
			require.Equal(t, tt.want, v.log(`sse.open(url, `+tt.params+`, `+logging+`)`))
			events, _ := v.sum(v.drainSamples(), "sse_event", "method", "GET")
			require.EqualValues(t, strings.Count(tt.want, "event:"), events)
		})
	}
	v := newVU(t)
	_, err := v.VU.Runtime().RunString(`sse.open("http://127.0.0.1:1", { maxEventSize: 0 }, () => {})`)
	require.ErrorContains(t, err, "invalid sse.open() maxEventSize")
}
