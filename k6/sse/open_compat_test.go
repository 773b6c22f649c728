package sse

import (
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"
)

// A script for xk6-sse that checks the status alone would pass without one event.
func TestOpenWarnsOnceOfAnotherType(t *testing.T) {
	contentTypeWarning = sync.Once{}
	v := newVU(t)
	logger, logged := test.NewNullLogger()
	v.state.Logger = logger
	v.set("url", serveText(t, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\ndata: 0\n\n"))
	for range 2 {
		v.mustRun(`sse.open(url, {}, () => {})`)
	}
	require.Len(t, logged.AllEntries(), 1)
	require.Contains(t, logged.LastEntry().Message, "Set anyContentType")
}

// Behaviour that scripts for xk6-sse rely on, and the options of open for it.
func TestOpenAsUpstream(t *testing.T) {
	t.Parallel()
	const plainHead = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
	huge := strings.Repeat("x", 200)
	for name, tt := range map[string]struct{ params, says, want string }{
		"comments are no events":      {`{}`, streamHead + ": ping\n\ndata: 0\n\n", "open event:||0|"},
		"every block is one":          {`{ everyBlock: true }`, streamHead + ": ping\n\n:\n\nid: 4\nevent: x\n\n: c\ndata: 0\n\n\n: tail", "open event:|||ping event:||| event:4|x|| event:||0|c error:truncated true"},
		"another type is none":        {`{}`, plainHead + "data: 0\n\n", "error:content_type true"},
		"another type is accepted":    {`{ anyContentType: true }`, plainHead + "data: 0\n\n", "open event:||0|"},
		"no type is accepted":         {`{ anyContentType: true }`, "HTTP/1.1 200 OK\r\n\r\ndata: 0\n\n", "open event:||0|"},
		"another status never is":     {`{ anyContentType: true }`, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "error:status true"},
		"an event that is too long":   {`{ maxEventSize: 100 }`, streamHead + "data: " + huge + "\n\n", "open error:too_long true"},
		"a comment is never too long": {`{ maxEventSize: 100 }`, streamHead + ":" + huge + "\ndata: 0\n\n", "open event:||0|"},
		"no method is GET":            {`{ method: "" }`, streamHead + "data: 0\n\n", "open event:||0|"},
		"lines behind the last event": {`{}`, streamHead + "data: 0\n\n: bye\nretry: 5\nfoo\n", "open event:||0|"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVU(t)
			v.set("url", serve(t, func(p *peer) { p.say(tt.says) }))
			require.Equal(t, tt.want, v.log(`sse.open(url, `+tt.params+`, `+logging+`)`))
			events, _ := v.sum(v.drainSamples(), "sse_event", "method", "GET")
			require.EqualValues(t, strings.Count(tt.want, "event:"), events)
		})
	}
	v := newVU(t)
	_, err := v.VU.Runtime().RunString(`sse.open("http://127.0.0.1:1", { maxEventSize: 0 }, () => {})`)
	require.ErrorContains(t, err, "invalid sse.open() maxEventSize")
}
