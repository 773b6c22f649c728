package sse

import (
	"errors"
	"strings"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/k6/network"
)

// OpenResponse is what open returns.
type OpenResponse struct {
	URL     string            `js:"url"`
	Status  int               `js:"status"`
	Headers map[string]string `js:"headers"`
	Error   string            `js:"error"`
}

// open implements sse.open(url, [params], fn) of xk6-sse: it blocks the VU until the stream has ended. fn runs before
// the dial, so that its handlers receive every error.
func (m *module) open(rawURL string, args ...sobek.Value) (*OpenResponse, error) {
	rt, state := m.vu.Runtime(), network.State(m.vu, importPath)
	p, err := parseOpen(rt, state, rawURL, args)
	if err != nil {
		return nil, err
	}
	c := newClient(m, state, p)
	defer c.cancel()
	if _, err := p.setup(sobek.Undefined(), rt.ToValue(c)); err != nil {
		return nil, err
	}
	if c.ctx.Err() != nil { // closed by its own function
		return c.response(), nil
	}
	err = c.run()
	if err == nil && c.end == nil && !c.closed { // by the VU's context: no more JS, but what it returns is not to look like a stream that ended
		c.end = &sseclient.Close{Reason: sseclient.ReasonInterrupted, Err: errInterrupted}
	}
	c.countClosed(err)
	if err == nil && c.end != nil && c.answer == nil && state.Options.Throw.Bool {
		err = c.end.Err // as upstream: of a request that got no response, never of a status or of a stream that broke
	}
	if err != nil {
		return nil, err
	}
	return c.response(), nil
}

var errInterrupted = errors.New("interrupted: k6 ended the iteration before the stream had ended")

func (c *Client) response() *OpenResponse {
	r := &OpenResponse{URL: c.params.url, Headers: map[string]string{}}
	if c.answer != nil {
		r.Status = c.answer.Status
		for name, values := range c.answer.Header {
			r.Headers[name] = strings.Join(values, ", ")
		}
	}
	if c.end != nil && c.end.Reason != sseclient.ReasonServer {
		r.Error = c.end.Message()
	}
	return r
}
