package requests

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"
	"golang.org/x/net/http/httpguts"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/proxy"
)

// An operation is one kind of request, compiled once for the stage: the bytes to send and the expected response.
type operation struct {
	name    string
	target  *target
	bytes   []byte
	unique  []int         // offsets of the unique text in the field bytes
	request *http.Request // has only the method, which http1.Conn.Head needs
	want    want
}

// A target is the scheme and host of a URL and the route to it.
type target struct {
	url   *url.URL // of the first operation with this scheme and host
	route *proxy.Proxy
}

type want struct {
	status int
	body   []byte // nil: any, unless isJSON
	json   any
	isJSON bool
	path   []string // path of json in the response

	lastMatch atomic.Pointer[[]byte] // the last body with the expected JSON; the next one is usually equal
}

// A spec is an operation as a script describes it.
type spec struct {
	Name    string            `js:"name"`
	Method  string            `js:"method"`
	URL     string            `js:"url"`
	Headers map[string]string `js:"headers"`
	Body    any               `js:"body"`
	Want    *struct {
		Status int         `js:"status"`
		Body   any         `js:"body"`
		JSON   sobek.Value `js:"json"`
		At     string      `js:"at"`
	} `js:"want"`
}

func (m *module) compile(v sobek.Value, state *lib.State) ([]*operation, error) {
	var specs []spec
	const example = "[{name: 'status', url: 'http://HOST/status'}]"
	if err := m.vu.Runtime().ExportTo(v, &specs); err != nil {
		return nil, fmt.Errorf("must be a list of operations, such as %s: %w", example, err)
	}
	if len(specs) == 0 {
		return nil, errors.New("must contain at least one operation, such as " + example)
	}
	targets := map[string]*target{}
	var out []*operation
	var err error
	m.vu.Runtime().ForOf(v, func(element sobek.Value) bool {
		var op *operation
		if err = checkProperties(element); err == nil {
			op, err = m.compileOne(&specs[len(out)], state, targets)
		}
		if err != nil {
			err = fmt.Errorf("[%d]: %w", len(out), err)
			return false
		}
		out = append(out, op)
		return true
	})
	return out, err
}

func checkProperties(operation sobek.Value) error {
	if err := checkNames(operation, "name", "method", "url", "headers", "body", "want"); err != nil {
		return err
	}
	if object, ok := operation.(*sobek.Object); ok {
		if err := checkNames(object.Get("want"), "status", "body", "json", "at"); err != nil {
			return fmt.Errorf("want: %w", err)
		}
	}
	return nil
}

// checkNames returns an error for an unknown property. With a misspelled "want", any response with status 200 would be
// accepted.
func checkNames(v sobek.Value, names ...string) error {
	object, ok := v.(*sobek.Object)
	if !ok {
		return nil
	}
	for _, name := range object.Keys() {
		if !slices.Contains(names, name) {
			return fmt.Errorf("unknown property %q; use %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// compileOne compiles one operation. Operations with the same scheme and host share a target.
func (m *module) compileOne(o *spec, state *lib.State, targets map[string]*target) (*operation, error) {
	body, err := bytesOf(o.Body)
	if err != nil {
		return nil, fmt.Errorf("body %w", err)
	}
	if o.Method == "" {
		o.Method = http.MethodGet
	}
	req, err := http.NewRequest(o.Method, strings.ReplaceAll(o.URL, unique, placeholder), bytes.NewReader(withPlaceholders(body))) //nolint:noctx // the request is only written
	switch {
	case err != nil:
		return nil, err //nolint:wrapcheck // names the URL or the method
	case req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.Hostname() == "":
		return nil, fmt.Errorf("url must start with http:// or https:// and name a host, got %q", o.URL)
	}
	req.Header.Set("User-Agent", state.Options.UserAgent.String) // empty: no User-Agent is sent
	for name, value := range o.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("invalid header %q: its name must be a token of HTTP, and its value must not contain control characters", name)
		}
		value = strings.ReplaceAll(value, unique, placeholder)
		if req.Header.Set(name, value); strings.EqualFold(name, "Host") {
			req.Host = value
		}
	}
	t, err := m.target(req.URL, targets)
	if err != nil {
		return nil, err
	}
	op := &operation{name: o.Name, target: t, request: &http.Request{Method: req.Method}, want: want{status: http.StatusOK}}
	if op.name == "" {
		op.name = req.URL.Path
	}
	var wire bytes.Buffer
	if err := http1.WriteRequest(&wire, req, t.route); err != nil {
		return nil, fmt.Errorf("write the request for %s: %w", req.URL.Redacted(), err)
	}
	op.bytes = wire.Bytes()
	for at := 0; ; at += len(placeholder) {
		n := bytes.Index(op.bytes[at:], []byte(placeholder))
		if n < 0 {
			break
		}
		at += n
		op.unique = append(op.unique, at)
	}
	return op, op.want.set(o)
}

// unique is the placeholder in a spec that each request replaces with a unique text.
const unique = "{unique}"

// placeholder stands for the unique text in a compiled operation. It has the same length, and no script would send it.
var placeholder = strings.ToLower(rand.Text()[:20])

func withPlaceholders(text []byte) []byte {
	if !bytes.Contains(text, []byte(unique)) {
		return text // ReplaceAll would return nil for an empty text
	}
	return bytes.ReplaceAll(text, []byte(unique), []byte(placeholder))
}

// writeUnique writes the request to buf with a unique text of prefix, zeros and n in base 36. It returns the request
// and that text.
func (op *operation) writeUnique(buf []byte, prefix string, n int64) (request, text []byte) {
	buf = append(buf[:0], op.bytes...)
	number := strconv.FormatInt(n, 36)
	for _, at := range op.unique {
		text = buf[at : at+len(placeholder)]
		for i := copy(text, prefix); i < len(text); i++ {
			text[i] = '0'
		}
		copy(text[len(text)-len(number):], number)
	}
	return buf, text
}

// target returns the target of a URL: one of known, or a new one, which it adds to known.
func (m *module) target(u *url.URL, known map[string]*target) (*target, error) {
	key := u.Scheme + "://" + u.Host
	if t := known[key]; t != nil {
		return t, nil
	}
	route, err := m.proxies.For(u)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the proxy
	}
	t := &target{url: u, route: route}
	known[key] = t
	return t, nil
}

func (w *want) set(o *spec) (err error) {
	if o.Want == nil {
		return nil
	}
	if o.Want.Status != 0 {
		w.status = o.Want.Status
	}
	if o.Want.At != "" {
		w.path = strings.Split(o.Want.At, ".")
	}
	if w.isJSON = o.Want.JSON != nil && !sobek.IsUndefined(o.Want.JSON); w.isJSON {
		text, err := jsonOf(o.Want.JSON)
		if err == nil {
			err = json.Unmarshal(withPlaceholders(text), &w.json) // decoded in the same way as the response
		}
		if err != nil {
			return fmt.Errorf("want.json must be valid JSON: %w", err)
		}
	}
	if o.Want.Body != nil {
		if w.body, err = bytesOf(o.Want.Body); err != nil {
			return fmt.Errorf("want.body %w", err)
		}
		w.body = withPlaceholders(w.body)
	}
	if w.isJSON && w.body != nil || w.path != nil && !w.isJSON {
		return errors.New("want must not have both body and json, and at requires json")
	}
	return nil
}

// jsonOf returns a JavaScript value as JSON.stringify writes it.
func jsonOf(v sobek.Value) ([]byte, error) {
	if object, ok := v.(*sobek.Object); ok {
		return object.MarshalJSON() //nolint:wrapcheck // set wraps it
	}
	return json.Marshal(v.Export()) //nolint:wrapcheck // set wraps it
}

// maxLength returns the maximum length of a body that is compared. A longer body is wrong.
func (w *want) maxLength() int64 { return max(maxBody, int64(len(w.body))) }

func (w *want) needsBody() bool { return w.body != nil || w.isJSON }

func (w *want) matches(body []byte) bool {
	if !w.isJSON {
		return w.body == nil || bytes.Equal(body, w.body)
	}
	if last := w.lastMatch.Load(); last != nil && bytes.Equal(*last, body) {
		return true
	}
	var value any
	if json.Unmarshal(body, &value) != nil {
		return false
	}
	for _, name := range w.path {
		inner, ok := value.(map[string]any)
		if !ok {
			return false
		}
		if value, ok = inner[name]; !ok {
			return false
		}
	}
	if !reflect.DeepEqual(value, w.json) {
		return false
	}
	clone := bytes.Clone(body)
	w.lastMatch.Store(&clone)
	return true
}

// bytesOf returns the bytes of a JavaScript string or ArrayBuffer; nil for no value.
func bytesOf(v any) ([]byte, error) {
	switch b := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []byte(b), nil
	case sobek.ArrayBuffer:
		return bytes.Clone(b.Bytes()), nil
	}
	return nil, fmt.Errorf("must be a string or an ArrayBuffer, got %v; encode an object with JSON.stringify", v)
}
