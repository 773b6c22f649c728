package sse

import (
	"cmp"
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

	"github.com/sse-soak/sse-soak/k6/sse/coding"
	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// openParams are the arguments of open.
type openParams struct {
	streamOptions
	url     string   // as given
	to      *url.URL // the same
	invalid error    // what is wrong with it: an error of the request, not of the call
	setup   sobek.Callable
	method  string
	body    string
	jar     *cookiejar.Jar
	timeout time.Duration // of the whole request, as upstream

	accept       string // what is said in Accept-Encoding; "": nothing
	sharing      sharing
	maxEventSize int32
	anyType      bool // its answer may be of another type than text/event-stream
	everyBlock   bool // blocks without data are events, too, as upstream
}

// parseOpen reads the arguments. Its errors are thrown.
func parseOpen(rt *sobek.Runtime, state *lib.State, rawURL string, args []sobek.Value) (*openParams, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, errors.New("invalid number of arguments to sse.open")
	}
	setup, ok := sobek.AssertFunction(args[len(args)-1])
	if !ok {
		return nil, errors.New("last argument to sse.open must be a function")
	}
	p := &openParams{
		streamOptions: streamOptions{tags: state.Tags.GetCurrentValues()},
		url:           rawURL, setup: setup, method: http.MethodGet, jar: state.CookieJar, maxEventSize: eventstream.DefaultLimit,
	}
	if p.to, p.invalid = parseURL(rawURL); p.invalid != nil {
		p.to = &url.URL{}
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
func (p *openParams) set(rt *sobek.Runtime, name string, v sobek.Value) error {
	_, err := p.streamOptions.set(rt, name, v)
	switch name {
	case "tags":
		name = "metric tags"
	case "jar":
		if jar, ok := v.Export().(*httpModule.CookieJar); ok {
			p.jar = jar.Jar
		}
	case "method":
		p.method = cmp.Or(strings.ToUpper(strings.TrimSpace(v.String())), http.MethodGet) // as upstream
		err = checkHeader(p.method, "")
	case "body":
		p.body = strings.TrimSpace(v.String())
	case "timeout":
		p.timeout, err = parseDuration(v)
	case acceptOption:
		p.accept, err = coding.Setting(v.String())
	case "http", "streamsPerConnection":
		err = p.sharing.set(name, v)
	case "maxEventSize":
		p.maxEventSize, err = parseInt(v, 1)
	case "anyContentType":
		p.anyType = v.ToBoolean()
	case "everyBlock":
		p.everyBlock = v.ToBoolean()
	}
	if err != nil {
		return fmt.Errorf("invalid sse.open() %s: %w", name, err)
	}
	return nil
}

// request makes the request.
func (p *openParams) request(state *lib.State) *request {
	r := p.streamOptions.request(state, p.to)
	r.method, r.body, r.jar, r.anyType, r.accept = p.method, p.body, p.jar, p.anyType, p.accept
	r.share(p.sharing, state)
	return r
}
