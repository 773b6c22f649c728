package sse

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	httpModule "go.k6.io/k6/v2/js/modules/k6/http"
	"go.k6.io/k6/v2/lib"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/k6/network"
)

type openParams struct {
	sourceOptions
	parsedURL  *url.URL       // empty if the argument is invalid
	setup      sobek.Callable // sets the handlers
	timeout    time.Duration  // of the whole request, as in xk6-sse; 0: none
	everyBlock bool           // blocks without data are events, too, as in xk6-sse
}

// parseOpen parses the arguments of open. open throws its errors.
func parseOpen(rt *sobek.Runtime, state *lib.State, rawURL string, args []sobek.Value) (*openParams, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, errors.New("invalid number of arguments to sse.open")
	}
	setup, ok := sobek.AssertFunction(args[len(args)-1])
	if !ok {
		return nil, errors.New("last argument to sse.open must be a function")
	}
	p := &openParams{setup: setup}
	p.tags, p.MaxRedirects, p.Jar = state.Tags.GetCurrentValues(), redirectLimit(state), jarOf(state)
	p.request = sseclient.Request{URL: rawURL, Method: http.MethodGet}
	var err error
	if p.parsedURL, err = sseclient.ParseURL(rawURL); err != nil { // the request reports the error
		p.parsedURL = &url.URL{}
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

// set parses a parameter. Like xk6-sse, it ignores unknown parameters.
func (p *openParams) set(rt *sobek.Runtime, name string, v sobek.Value) error {
	_, err := p.setCommon(rt, name, v)
	switch name {
	case "tags":
		name = "metric tags"
	case "jar":
		if jar, ok := v.Export().(*httpModule.CookieJar); ok {
			p.Jar = jar.Jar
		}
	case "method":
		p.request.Method = cmp.Or(strings.ToUpper(strings.TrimSpace(v.String())), http.MethodGet) // as xk6-sse does
		err = sseclient.CheckHeader(p.request.Method, "")
	case "body":
		p.request.Body = strings.TrimSpace(v.String())
	case "timeout":
		p.timeout, err = network.Duration(v)
	case "anyContentType":
		p.AnyType = v.ToBoolean()
	case "everyBlock":
		p.everyBlock = v.ToBoolean()
	}
	if err != nil {
		return fmt.Errorf("invalid sse.open() %s: %w", name, err)
	}
	return nil
}
