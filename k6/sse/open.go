package sse

import (
	"errors"
	"strings"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"
)

// OpenResponse is what open returns.
type OpenResponse struct {
	URL     string            `js:"url"`
	Status  int               `js:"status"`
	Headers map[string]string `js:"headers"`
	Error   string            `js:"error"`
}

// open is sse.open(url, [params], fn) of xk6-sse: it blocks the VU until the stream
// has ended. fn runs first, before the dial, so that its handlers see every error.
func (m *module) open(rawURL string, args ...sobek.Value) (*OpenResponse, error) {
	rt, state := m.vu.Runtime(), m.state()
	p, err := parseOpen(rt, state, rawURL, args)
	if err != nil {
		return nil, err
	}
	c := newClient(m, state, p)
	defer c.shutDown()
	if _, err := p.setup(sobek.Undefined(), rt.ToValue(c)); err != nil {
		return nil, err
	}
	if c.isClosed() { // by its own function
		return c.response(nil), nil
	}
	fail, err := c.run()
	c.countClosed(fail, err)
	if err == nil {
		err = thrown(state, fail, c)
	}
	if err != nil {
		return nil, err
	}
	return c.response(fail), nil
}

// thrown is the error that the option `throw` turns a failure into: as upstream, of a
// request that got no response, never of a status or of a stream that broke.
func thrown(state *lib.State, fail *failure, c *Client) error {
	if fail == nil || fail.err == nil || c.answer != nil || !state.Options.Throw.Bool {
		return nil
	}
	return fail.err
}

func (c *Client) response(fail *failure) *OpenResponse {
	r := &OpenResponse{URL: c.params.url, Headers: map[string]string{}}
	if c.answer != nil {
		r.Status = c.answer.status
		for name, values := range c.answer.header {
			r.Headers[name] = strings.Join(values, ", ")
		}
	}
	if fail != nil && fail.reason != ReasonServer {
		r.Error = fail.message()
	}
	return r
}

var errTimeout = errors.New("the request took longer than its timeout")
