package soak

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go.k6.io/k6/v2/lib/netext/httpext"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// serverHeader names the server that responded, if a service has several.
const serverHeader = "X-Server"

// recordResponse records the outcome of a request that ends a stream, unless the run was interrupted.
func (e *ender) recordResponse(request *sseclient.Request, resp *httpext.Response, duration time.Duration) {
	if e.h.ctx.Err() != nil {
		return
	}
	server := ""
	if u, err := url.Parse(request.URL); err == nil {
		server = u.Host
	}
	if resp != nil {
		server = cmp.Or(resp.Headers[http.CanonicalHeaderKey(serverHeader)], server)
	}
	e.h.m.recorder.addEndResponse(server, e.code(resp), duration)
}

// code returns the outcome of a request as a value of shard.TagCode.
func (e *ender) code(resp *httpext.Response) string {
	const unknown = 1000 // k6's code for other errors
	switch {
	case resp == nil:
		return fmt.Sprint(shard.CodeNet, unknown)
	case resp.Status == 0:
		return fmt.Sprint(shard.CodeNet, cmp.Or(resp.ErrorCode, unknown))
	case e.accepts(resp.Status):
		return shard.CodeOK
	}
	return fmt.Sprint(shard.CodeStatus, resp.Status)
}

// addEndResponse counts a request that ended a stream, by server and outcome.
func (t *tally) addEndResponse(server, code string, duration time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams.ends == nil {
		t.streams.ends = new(shard.Ends)
	}
	t.streams.ends.Add(server, code, t.wall(time.Now()), duration)
}
