package sse

import (
	"errors"
	"strings"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/k6/network"
)

// An OpenResponse is the result of open. Without a response, Status is 0. Error is "" if the server ended the stream
// without a fault, or the script closed it.
type OpenResponse struct {
	URL     string            `js:"url"`
	Status  int               `js:"status"`
	Headers map[string]string `js:"headers"`
	Error   string            `js:"error"`
}

// open implements sse.open(url, [params], fn) of xk6-sse. It blocks the VU until the stream has ended. fn runs before
// the dial, so that its handlers receive every error.
func (m *Module) open(rawURL string, args ...sobek.Value) (*OpenResponse, error) {
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
	if c.ctx.Err() != nil { // fn called close
		return c.response(), nil
	}
	err = c.run()
	if err == nil && c.end == nil && !c.isClosed { // k6 ended the iteration
		c.end = &sseclient.Close{Reason: sseclient.ReasonInterrupted, Err: errInterrupted}
	}
	c.countClosed(err)
	if err == nil && c.end != nil && c.resp == nil && state.Options.Throw.Bool {
		err = c.end.Err // as in xk6-sse, only the error of a request without a response is thrown
	}
	if err != nil {
		return nil, err
	}
	return c.response(), nil
}

var errInterrupted = errors.New("interrupted: k6 ended the iteration before the stream had ended")

func (c *Client) response() *OpenResponse {
	r := &OpenResponse{URL: c.params.request.URL, Headers: map[string]string{}}
	if c.resp != nil {
		r.Status = c.resp.Status
		for name, values := range c.resp.Header {
			r.Headers[name] = strings.Join(values, ", ")
		}
	}
	if c.end != nil && c.end.Reason != sseclient.ReasonServer {
		r.Error = c.end.Message()
	}
	return r
}
