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

// An operation is one kind of request, compiled once for the stage: the bytes that are sent, and the expected answer.
type operation struct {
	name    string
	target  *target
	sent    []byte
	unique  []int         // where in sent each request has a text of its own
	request *http.Request // tells ReadResponse the method
	want    want
}

// A target is where connections go.
type target struct {
	url     *url.URL
	through *proxy.Proxy
}

// A want holds the expected properties of a response.
type want struct {
	status int
	body   []byte // nil: any, unless json
	json   any
	isJSON bool
	at     []string // names in the answer that lead to json

	right atomic.Pointer[[]byte] // the last body that was right, which the next one is mostly equal to
}

// A spec is an operation as scripts write it.
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

// compile compiles the operations of a call.
func (m *module) compile(v sobek.Value, state *lib.State) ([]*operation, error) {
	var all []spec
	if err := m.vu.Runtime().ExportTo(v, &all); err != nil || len(all) == 0 {
		return nil, errors.New("must be a list of at least one operation, such as [{name: 'status', url: 'http://HOST/status'}]")
	}
	targets := map[string]*target{}
	out := make([]*operation, len(all))
	for i, one := range m.listed(v) {
		err := misspelt(one, "name", "method", "url", "headers", "body", "want")
		if object, ok := one.(*sobek.Object); ok && err == nil {
			if err = misspelt(object.Get("want"), "status", "body", "json", "at"); err != nil {
				err = fmt.Errorf("want: %w", err)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	for i := range all {
		op, err := m.compileOne(&all[i], state, targets)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		out[i] = op
	}
	return out, nil
}

// listed returns the elements of a JavaScript array.
func (m *module) listed(v sobek.Value) (out []sobek.Value) {
	m.vu.Runtime().ForOf(v, func(one sobek.Value) bool {
		out = append(out, one)
		return true
	})
	return out
}

// misspelt names an unknown property. An answer without an expectation, because "want" is misspelt, would always be
// right.
func misspelt(v sobek.Value, names ...string) error {
	object, ok := v.(*sobek.Object)
	if !ok {
		return nil
	}
	for _, name := range object.Keys() {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

func (m *module) compileOne(o *spec, state *lib.State, targets map[string]*target) (*operation, error) {
	body, err := bytesOf(o.Body)
	if err != nil {
		return nil, fmt.Errorf("its body %w", err)
	}
	if o.Method == "" {
		o.Method = http.MethodGet
	}
	req, err := http.NewRequest(o.Method, strings.ReplaceAll(o.URL, unique, placeholder), bytes.NewReader(placed(body))) //nolint:noctx // it is only written
	switch {
	case err != nil:
		return nil, err //nolint:wrapcheck // names the URL or the method
	case req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.Hostname() == "":
		return nil, fmt.Errorf("invalid URL %q: it must begin with http:// or https:// and name a host", o.URL)
	}
	req.Header.Set("User-Agent", state.Options.UserAgent.String) // empty: none is sent
	for name, value := range o.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("invalid header %q: neither name nor value may hold line breaks or control characters", name)
		}
		if req.Header.Set(name, strings.ReplaceAll(value, unique, placeholder)); strings.EqualFold(name, "Host") {
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
	if op.sent, err = wireFormat(req, t.through); err != nil {
		return nil, err
	}
	for at, rest := 0, op.sent; ; {
		n := bytes.Index(rest, []byte(placeholder))
		if n < 0 {
			break
		}
		at += n
		op.unique = append(op.unique, at)
		at += len(placeholder)
		rest = op.sent[at:]
	}
	return op, op.want.set(o)
}

// In a request unique stands for a text that no other one has, and in what it wants for the same.
const unique = "{unique}"

// placeholder stands for the unique text while requests are compiled. It has the length of the unique texts, and no
// script would send it.
var placeholder = strings.ToLower(rand.Text()[:20])

func placed(text []byte) []byte {
	if !bytes.Contains(text, []byte(unique)) {
		return text // and not nil where it is empty
	}
	return bytes.ReplaceAll(text, []byte(unique), []byte(placeholder))
}

// personalize returns the request with its own text, made from the stage's prefix and a number.
func (op *operation) personalize(buf []byte, prefix string, n int64) (sent, text []byte) {
	buf = append(buf[:0], op.sent...)
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

func (m *module) target(u *url.URL, known map[string]*target) (*target, error) {
	key := u.Scheme + "://" + u.Host
	if t := known[key]; t != nil {
		return t, nil
	}
	through, err := m.proxies.For(u)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the proxy
	}
	t := &target{url: u, through: through}
	known[key] = t
	return t, nil
}

// wireFormat returns the bytes of the request.
func wireFormat(req *http.Request, through *proxy.Proxy) ([]byte, error) {
	var out bytes.Buffer
	if err := http1.WriteRequest(&out, req, through); err != nil {
		return nil, fmt.Errorf("write the request for %s: %w", req.URL.Redacted(), err)
	}
	return out.Bytes(), nil
}

func (w *want) set(o *spec) (err error) {
	if o.Want == nil {
		return nil
	}
	if o.Want.Status != 0 {
		w.status = o.Want.Status
	}
	if o.Want.At != "" {
		w.at = strings.Split(o.Want.At, ".")
	}
	if w.isJSON = o.Want.JSON != nil && !sobek.IsUndefined(o.Want.JSON); w.isJSON {
		text, err := jsonOf(o.Want.JSON)
		if err == nil {
			err = json.Unmarshal(placed(text), &w.json) // as an answer will be read
		}
		if err != nil {
			return fmt.Errorf("what it wants is no JSON: %w", err)
		}
	}
	if o.Want.Body != nil {
		if w.body, err = bytesOf(o.Want.Body); err != nil {
			return fmt.Errorf("the body that it wants %w", err)
		}
		w.body = placed(w.body)
	}
	if w.isJSON && w.body != nil || w.at != nil && !w.isJSON {
		return errors.New("it wants either a body or json, and at only leads to json")
	}
	return nil
}

// jsonOf returns a JavaScript value as JSON.stringify writes it.
func jsonOf(v sobek.Value) ([]byte, error) {
	if object, ok := v.(*sobek.Object); ok {
		return object.MarshalJSON() //nolint:wrapcheck // set says the rest
	}
	return json.Marshal(v.Export()) //nolint:wrapcheck // set says the rest
}

// most returns the maximum length of a body that is compared; a longer one is wrong.
func (w *want) most() int64 { return max(maxKept, int64(len(w.body))) }

// looks reports whether the body of an answer matters.
func (w *want) looks() bool { return w.body != nil || w.isJSON }

// matches reports whether a body is right.
func (w *want) matches(body []byte) bool {
	if !w.isJSON {
		return w.body == nil || bytes.Equal(body, w.body)
	}
	if right := w.right.Load(); right != nil && bytes.Equal(*right, body) {
		return true
	}
	var value any
	if json.Unmarshal(body, &value) != nil {
		return false
	}
	for _, name := range w.at {
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
	copied := bytes.Clone(body)
	w.right.Store(&copied)
	return true
}

// bytesOf returns the bytes of a JavaScript string or ArrayBuffer.
func bytesOf(v any) ([]byte, error) {
	switch b := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []byte(b), nil
	case sobek.ArrayBuffer:
		return bytes.Clone(b.Bytes()), nil
	}
	return nil, fmt.Errorf("must be a text or an ArrayBuffer, not %T", v)
}
