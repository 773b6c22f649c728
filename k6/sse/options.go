package sse

import (
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
	"github.com/sse-soak/sse-soak/k6/network"
)

// sourceOptions holds the options of an EventSource, or the parameters of open.
type sourceOptions struct {
	sseclient.Options
	tags            metrics.TagsAndMeta
	request         sseclient.Request // changed only by renew, between attempts
	ledger          Ledger            // nil: none
	secondRequest   *secondRequest    // nil: none
	renew           sobek.Callable    // returns changes for each attempt except the first; nil: no changes
	withCredentials bool              // scripts can read it, but it has no effect
}

// A Ledger is the value of the option ledger. The stream calls its callbacks in Go, without JavaScript. Callbacks is
// called on the event loop, once per source, and may throw a JavaScript exception.
type Ledger interface {
	Callbacks() sseclient.Callbacks
}

// isBodiless reports whether the method of the requests allows no body.
func (o *sourceOptions) isBodiless() bool {
	return o.request.Method == "" || o.request.Method == http.MethodGet
}

// setDefaults sets the documented defaults, and copies the tags, the redirect limit and the cookie jar of k6.
func (o *sourceOptions) setDefaults(state *lib.State) {
	o.tags = state.Tags.GetCurrentValues()
	o.MaxRedirects, o.Jar = redirectLimit(state), jarOf(state)
	o.ConnectTimeout, o.ReconnectDelay = sseclient.DefaultConnectTimeout, sseclient.DefaultReconnectDelay
	o.Reconnect = sseclient.ReconnectStandard
}

// redirectLimit returns the option maxRedirects of k6, or 10 if the option is not set.
func redirectLimit(state *lib.State) int {
	if state.Options.MaxRedirects.Valid {
		return int(state.Options.MaxRedirects.Int64)
	}
	return 10
}

// jarOf returns the cookie jar of the VU, or a nil interface if the VU has no jar.
func jarOf(state *lib.State) http.CookieJar {
	if state.CookieJar == nil {
		return nil
	}
	return state.CookieJar
}

// setCommon parses an option of both EventSource and open. known is false for other options.
func (o *sourceOptions) setCommon(rt *sobek.Runtime, name string, v sobek.Value) (known bool, err error) {
	switch name {
	case "headers":
		o.request.Header, err = parseHeaders(rt, v)
	case "tags":
		err = common.ApplyCustomUserTags(rt, &o.tags, v)
	case "connectTimeout":
		o.ConnectTimeout, err = network.Duration(v)
	case "idleTimeout":
		o.IdleTimeout, err = network.Duration(v)
	case "followRedirects":
		o.FollowRedirects, err = parseBool(v)
	case "maxEventSize":
		o.MaxEventSize, err = parseInt(v, 1, math.MaxInt32)
	case "http":
		o.Sharing.Protocol, err = sseclient.ParseProtocol(v.String())
	case "streamsPerConnection":
		var n int
		n, err = parseInt(v, 0, math.MaxUint16)
		o.Sharing.StreamsPerConnection = uint16(n) // #nosec G115 -- checked by parseInt
	case "acceptEncoding":
		o.AcceptEncoding, err = coding.AcceptEncoding(v.String())
	default:
		return false, nil
	}
	return true, err
}

func parseOptions(rt *sobek.Runtime, v sobek.Value, o *sourceOptions) error {
	if common.IsNullish(v) {
		return nil
	}
	obj, ok := v.(*sobek.Object)
	if !ok {
		return fmt.Errorf("the options must be an object, got %s", network.Quote(v))
	}
	var second sobek.Value
	for _, name := range obj.Keys() {
		v := obj.Get(name)
		switch {
		case sobek.IsUndefined(v):
		case name == "then":
			second = v // its default timeout depends on another option
		default:
			if err := o.set(rt, name, v); err != nil {
				return err
			}
		}
	}
	if o.request.Body != "" && o.isBodiless() {
		return fmt.Errorf("option body: %w", sseclient.ErrBodyOfGet)
	}
	o.LastEventID = o.takeLastEventID(o.request.Header)
	if common.IsNullish(second) {
		return nil
	}
	o.FollowUpTimeout = o.ConnectTimeout
	var err error
	if o.secondRequest, err = parseThen(rt, second, &o.FollowUpTimeout); err != nil {
		return fmt.Errorf("option then: %w", err)
	}
	return nil
}

const lastEventID = "Last-Event-Id" // the canonical form of net/http

// takeLastEventID removes Last-Event-ID from headers of the script, and returns its value. Received ids replace this
// value, so the header is not constant. If the stream does not resume by that header, takeLastEventID does nothing.
func (o *sourceOptions) takeLastEventID(h http.Header) (id string) {
	if o.Resume == (sseclient.Resume{}) {
		id = h.Get(lastEventID)
		h.Del(lastEventID)
	}
	return id
}

const resumeOption = "resume"

func (o *sourceOptions) set(rt *sobek.Runtime, name string, v sobek.Value) error {
	known, err := o.setCommon(rt, name, v)
	switch name {
	case "reconnectDelay":
		o.ReconnectDelay, err = network.Duration(v)
	case "exactDelay":
		o.ExactDelay, err = parseBool(v)
	case "reconnect":
		o.Reconnect, err = parseReconnect(v)
	case "maxRedirects":
		o.MaxRedirects, err = parseInt(v, 0, math.MaxInt32)
	case "ledger":
		o.ledger, err = parseLedger(v)
	case "method":
		o.request.Method, err = parseMethod(v)
	case "body":
		o.request.Body, err = parseBody(v)
	case resumeOption:
		o.Resume, err = parseResume(v)
	case "renew":
		o.renew, err = parseRenew(v)
	case "withCredentials":
		o.withCredentials = v.ToBoolean()
	default:
		if !known {
			return fmt.Errorf("unknown option %q; use headers, tags, connectTimeout, idleTimeout, http, streamsPerConnection, "+
				"reconnect, reconnectDelay, exactDelay, maxRedirects, followRedirects, maxEventSize, ledger, method, body, "+
				"acceptEncoding, resume, renew, withCredentials or then", name)
		}
	}
	if err != nil {
		return fmt.Errorf("option %s: %w", name, err)
	}
	return nil
}

// parseHeaders parses an object whose properties are header fields. It returns nil for null.
func parseHeaders(rt *sobek.Runtime, v sobek.Value) (http.Header, error) {
	if common.IsNullish(v) {
		return nil, nil // no headers
	}
	obj, h := v.ToObject(rt), make(http.Header)
	for _, name := range obj.Keys() {
		value := obj.Get(name).String()
		if err := sseclient.CheckHeader(name, value); err != nil {
			return nil, err
		}
		h.Set(name, strings.TrimSpace(value))
	}
	return h, nil
}

func parseBool(v sobek.Value) (bool, error) {
	value, ok := v.Export().(bool)
	if !ok {
		return false, fmt.Errorf("must be true or false, got %s", network.Quote(v))
	}
	return value, nil
}

// parseReconnect parses the option reconnect. With true, the stream also reconnects after a status that may be
// temporary, unlike in the standard.
func parseReconnect(v sobek.Value) (sseclient.Reconnect, error) {
	value, err := parseBool(v)
	if value {
		return sseclient.ReconnectAlways, err
	}
	return sseclient.ReconnectOff, err
}

func parseInt(v sobek.Value, lowest, highest int64) (int, error) {
	n, ok := v.Export().(int64)
	if !ok || n < lowest || n > highest {
		return 0, fmt.Errorf("must be an integer from %d to %d, got %s", lowest, highest, network.Quote(v))
	}
	return int(n), nil
}

func parseLedger(v sobek.Value) (Ledger, error) {
	if sobek.IsNull(v) {
		return nil, nil //nolint:nilnil // no ledger
	}
	ledger, ok := v.Export().(Ledger)
	if !ok {
		return nil, fmt.Errorf("must be a Ledger of k6/x/soak, got %s", network.Quote(v))
	}
	return ledger, nil
}
