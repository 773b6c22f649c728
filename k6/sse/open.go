package sse

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	httpModule "go.k6.io/k6/v2/js/modules/k6/http"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"
)

// OpenResponse is what open returns.
type OpenResponse struct {
	URL     string            `js:"url"`
	Status  int               `js:"status"`
	Headers map[string]string `js:"headers"`
	Error   string            `js:"error"`
}

// openParams are the arguments of open.
type openParams struct {
	url            string
	setup          sobek.Callable
	header         http.Header
	method         string
	body           string
	jar            *cookiejar.Jar
	timeout        time.Duration // of the whole request, as upstream
	connectTimeout time.Duration
	idleTimeout    time.Duration
	tags           metrics.TagsAndMeta
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
	begun := time.Now()
	fail, err := c.run()
	c.countClosed(begun, fail, err)
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

func parseOpen(rt *sobek.Runtime, state *lib.State, rawURL string, args []sobek.Value) (*openParams, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, errors.New("invalid number of arguments to sse.open")
	}
	setup, ok := sobek.AssertFunction(args[len(args)-1])
	if !ok {
		return nil, errors.New("last argument to sse.open must be a function")
	}
	p := &openParams{
		url: rawURL, setup: setup, method: http.MethodGet,
		jar: state.CookieJar, tags: state.Tags.GetCurrentValues(),
	}
	if len(args) == 2 && !common.IsNullish(args[0]) {
		obj := args[0].ToObject(rt)
		for _, name := range obj.Keys() {
			if v := obj.Get(name); !common.IsNullish(v) {
				if err := p.set(rt, name, v); err != nil {
					return nil, err
				}
			}
		}
	}
	return p, nil
}

// set reads one parameter. Unknown ones are ignored, as upstream does.
func (p *openParams) set(rt *sobek.Runtime, name string, v sobek.Value) (err error) {
	switch name {
	case "headers":
		p.header, err = parseHeaders(rt, v)
	case "tags":
		if err := common.ApplyCustomUserTags(rt, &p.tags, v); err != nil {
			return fmt.Errorf("invalid sse.open() metric tags: %w", err)
		}
	case "jar":
		if jar, ok := v.Export().(*httpModule.CookieJar); ok {
			p.jar = jar.Jar
		}
	case "method":
		p.method = strings.ToUpper(strings.TrimSpace(v.String()))
		err = checkHeader(p.method, "")
	case "body":
		p.body = strings.TrimSpace(v.String())
	case "timeout":
		p.timeout, err = parseDuration(v)
	case "connectTimeout":
		p.connectTimeout, err = parseDuration(v)
	case "idleTimeout":
		p.idleTimeout, err = parseDuration(v)
	}
	if err != nil {
		return fmt.Errorf("invalid sse.open() %s: %w", name, err)
	}
	return nil
}

// request makes the request, or says what is wrong with the URL.
func (p *openParams) request(state *lib.State) (*request, error) {
	u, err := parseURL(p.url)
	if err != nil {
		return nil, err
	}
	return &request{
		url: u, method: p.method, header: p.header, body: p.body, jar: p.jar,
		userAgent: state.Options.UserAgent.String, maxRedirects: redirectLimit(state),
	}, nil
}

// describe sets the tags known from the parameters, whatever the URL.
func (p *openParams) describe(state *lib.State) {
	u, err := parseURL(p.url)
	if err != nil {
		u = &url.URL{}
	}
	describeRequest(&p.tags, state.Options.SystemTags, u, p.method)
}

var errTimeout = errors.New("the request took longer than its timeout")

// limit is a context that ends with the iteration or after timeout.
func (p *openParams) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return contextWithin(ctx, p.timeout)
}
