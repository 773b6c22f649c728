package sse

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/types"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/k6/sse/coding"
	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// streamOptions are those that EventSource and open share.
type streamOptions struct {
	header          http.Header
	tags            metrics.TagsAndMeta
	connectTimeout  time.Duration // 0: none
	idleTimeout     time.Duration // 0: none
	followRedirects bool          // follow redirects to other origins
}

// set reads one option, and returns false where it is none of these.
func (o *streamOptions) set(rt *sobek.Runtime, name string, v sobek.Value) (known bool, err error) {
	switch name {
	case "headers":
		o.header, err = parseHeaders(rt, v)
	case "tags":
		err = common.ApplyCustomUserTags(rt, &o.tags, v)
	case "connectTimeout":
		o.connectTimeout, err = parseDuration(v)
	case "idleTimeout":
		o.idleTimeout, err = parseDuration(v)
	case "followRedirects":
		o.followRedirects, err = parseBool(v)
	default:
		return false, nil
	}
	return true, err
}

// request is a GET with these options.
func (o *streamOptions) request(state *lib.State, u *url.URL) *request {
	return &request{
		url: u, method: http.MethodGet, header: o.header, jar: state.CookieJar,
		userAgent: state.Options.UserAgent.String, maxRedirects: redirectLimit(state),
		followRedirects: o.followRedirects,
	}
}

// sourceOptions are the options of an EventSource, with their defaults filled in.
type sourceOptions struct {
	streamOptions
	ledger         Observer
	reconnectDelay time.Duration
	reconnect      reconnectMode
	maxRedirects   int32
	maxEventSize   int32
	sharing        sharing
	rare           *rareOptions // nil for none of them
}

// rareOptions are those that few sources have. Thousands of others pay 8 bytes for them.
type rareOptions struct {
	method      string // "" for GET
	body        string
	accept      string // what is said in Accept-Encoding; "": nothing
	resume      resumeBy
	then        *secondRequest
	renew       sobek.Callable // what each attempt but the first sends; nil: the same
	credentials bool           // withCredentials, which is told and changes nothing

	// Of Streams.
	renewInGo func(Keeper) error
	opened    func(k Keeper, begun, at time.Time)
	closed    func(k Keeper, at time.Time, c Close)
}

var noRareOptions rareOptions

var errBodyOfGet = errors.New("a GET has none: set method, as to POST")

// bodiless says that the method takes no body.
func (o *rareOptions) bodiless() bool { return o.method == "" || o.method == http.MethodGet }

// rarely are the rare options, to be read.
func (o *sourceOptions) rarely() *rareOptions {
	if o.rare == nil {
		return &noRareOptions
	}
	return o.rare
}

// rareToSet are the same, to be written.
func (o *sourceOptions) rareToSet() *rareOptions {
	if o.rare == nil {
		o.rare = new(rareOptions)
	}
	return o.rare
}

// reconnectMode is what an EventSource does when an attempt or a stream ends.
type reconnectMode int32

const (
	// reconnectOff: never connect again.
	reconnectOff reconnectMode = iota
	// reconnectStandard: as the HTML standard says, after the end of a stream and
	// after a network error, not after a wrong status or content type.
	reconnectStandard
	// reconnectStubborn: also after a status that may be better next time.
	reconnectStubborn
)

const (
	defaultConnectTimeout = 10 * time.Second
	defaultReconnectDelay = time.Second
)

// resumeOption is how a reconnect says where it was. A suite has the same name.
const resumeOption = "resume"

// acceptOption is which compressions are asked for.
const acceptOption = "acceptEncoding"

// parseOptions reads the second argument of EventSource. Its errors name the option.
func parseOptions(rt *sobek.Runtime, v sobek.Value, o *sourceOptions) error {
	o.setDefaults()
	if common.IsNullish(v) {
		return nil
	}
	obj, ok := v.(*sobek.Object)
	if !ok {
		return fmt.Errorf("the options must be an object, not %s", v)
	}
	var then sobek.Value
	for _, name := range obj.Keys() {
		v := obj.Get(name)
		if sobek.IsUndefined(v) {
			continue
		}
		if name == "then" {
			then = v // its default is another option
			continue
		}
		if err := o.set(rt, name, v); err != nil {
			return err
		}
	}
	return o.complete(rt, then)
}

// setDefaults sets those that are not the zero value.
func (o *sourceOptions) setDefaults() {
	o.connectTimeout = defaultConnectTimeout
	o.reconnectDelay = defaultReconnectDelay
	o.reconnect = reconnectStandard
	o.maxEventSize = eventstream.DefaultLimit
	o.ledger = nopObserver{}
}

// complete does what takes more than one option.
func (o *sourceOptions) complete(rt *sobek.Runtime, then sobek.Value) (err error) {
	if r := o.rarely(); r.body != "" && r.bodiless() {
		return fmt.Errorf("option body: %w", errBodyOfGet)
	}
	if common.IsNullish(then) {
		return nil
	}
	if o.rareToSet().then, err = parseThen(rt, then, o.connectTimeout); err != nil {
		return fmt.Errorf("option then: %w", err)
	}
	return nil
}

func (o *sourceOptions) set(rt *sobek.Runtime, name string, v sobek.Value) error {
	known, err := o.streamOptions.set(rt, name, v)
	switch name {
	case "http", "streamsPerConnection":
		err = o.sharing.set(name, v)
	case "reconnectDelay":
		o.reconnectDelay, err = parseDuration(v)
	case "reconnect":
		o.reconnect, err = parseReconnect(v)
	case "maxRedirects":
		o.maxRedirects, err = parseInt(v, 0)
	case "maxEventSize":
		o.maxEventSize, err = parseInt(v, 1)
	case "ledger":
		o.ledger, err = parseLedger(v)
	case "method":
		o.rareToSet().method, err = parseMethod(v)
	case "body":
		o.rareToSet().body, err = parseBody(v)
	case acceptOption:
		var accept string
		if accept, err = coding.Setting(v.String()); accept != "" || o.rare != nil {
			o.rareToSet().accept = accept
		}
	case resumeOption:
		o.rareToSet().resume, err = parseResume(v)
	case "renew":
		o.rareToSet().renew, err = parseRenew(v)
	case "withCredentials":
		if v.ToBoolean() {
			o.rareToSet().credentials = true
		}
	default:
		if known {
			break
		}
		return fmt.Errorf("unknown option %q: the options are headers, tags, connectTimeout, idleTimeout, http, streamsPerConnection, "+
			"reconnect, reconnectDelay, maxRedirects, followRedirects, maxEventSize, ledger, method, body, acceptEncoding, resume, renew, withCredentials and then", name)
	}
	if err != nil {
		return fmt.Errorf("option %s: %w", name, err)
	}
	return nil
}

// parseHeaders reads an object of strings.
func parseHeaders(rt *sobek.Runtime, v sobek.Value) (http.Header, error) {
	if common.IsNullish(v) {
		return nil, nil // no headers is no error
	}
	obj, h := v.ToObject(rt), make(http.Header)
	for _, name := range obj.Keys() {
		value := obj.Get(name).String()
		if err := checkHeader(name, value); err != nil {
			return nil, err
		}
		h.Set(name, strings.TrimSpace(value))
	}
	return h, nil
}

// parseDuration accepts a number of milliseconds or a string as "10s", not below 0.
func parseDuration(v sobek.Value) (time.Duration, error) {
	x := v.Export()
	if f, ok := x.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return 0, fmt.Errorf("%v is not a number of milliseconds", f)
	}
	d, err := types.GetDurationValue(x)
	if err != nil {
		return 0, fmt.Errorf("%s is neither a number of milliseconds nor a duration as \"10s\"", v)
	}
	if d < 0 {
		return 0, fmt.Errorf("%s is below 0", v)
	}
	return d, nil
}

func parseBool(v sobek.Value) (bool, error) {
	on, ok := v.Export().(bool)
	if !ok {
		return false, fmt.Errorf("%s is neither true nor false", v)
	}
	return on, nil
}

func parseReconnect(v sobek.Value) (reconnectMode, error) {
	on, err := parseBool(v)
	switch {
	case err != nil:
		return 0, err
	case on:
		return reconnectStubborn, nil
	default:
		return reconnectOff, nil
	}
}

func parseInt(v sobek.Value, least int64) (int32, error) {
	n, ok := v.Export().(int64)
	if !ok || n < least || n > math.MaxInt32 {
		return 0, fmt.Errorf("%s is not a whole number of at least %d", v, least)
	}
	return int32(n), nil //nolint:gosec // G115: checked above
}

func parseLedger(v sobek.Value) (Observer, error) {
	if sobek.IsNull(v) {
		return nopObserver{}, nil
	}
	ledger, ok := v.Export().(Observer)
	if !ok {
		return nil, fmt.Errorf("%s is no ledger: give it a Ledger of k6/x/soak", v)
	}
	return ledger, nil
}
