package sse

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/grafana/sobek"
)

// resumeBy says how a reconnect tells the last event ID, where there is one.
type resumeBy struct {
	none  bool
	query string // the name of a parameter; "" for the header Last-Event-ID
}

var errResume = errors.New(`it is none of "header", "none" and { query: "name" }`)

func parseResume(v sobek.Value) (by resumeBy, err error) {
	if obj, ok := v.(*sobek.Object); ok {
		for _, name := range obj.Keys() {
			if name != "query" {
				return by, fmt.Errorf("%q is unknown: %w", name, errResume)
			}
			if by.query, ok = obj.Get(name).Export().(string); !ok || by.query == "" {
				return by, errors.New("query is no name of a parameter")
			}
		}
		if by.query != "" {
			return by, nil
		}
		return by, errResume
	}
	switch v.Export() {
	case "header":
		return by, nil
	case "none":
		return resumeBy{none: true}, nil
	default:
		return by, errResume
	}
}

// tell puts the last event ID into a request.
func (by resumeBy) tell(r *request, id string) {
	switch {
	case id == "" || by.none:
	case by.query == "":
		r.lastEventID = id
	default:
		u := *r.url
		u.RawQuery = withParameter(u.RawQuery, by.query, id)
		r.url = &u
	}
}

// withParameter sets a parameter of a query and leaves the others as they are written, in their order: a
// server may compare them byte by byte, as where a URL is signed.
func withParameter(query, name, value string) string {
	var out []string
	for pair := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if key, err := url.QueryUnescape(key); pair != "" && (err != nil || key != name) {
			out = append(out, pair)
		}
	}
	return strings.Join(append(out, url.QueryEscape(name)+"="+url.QueryEscape(value)), "&")
}

// parseMethod reads the method of a request that has an event stream, or none of these two, as its answer.
func parseMethod(v sobek.Value) (string, error) {
	text, ok := v.Export().(string)
	method := strings.ToUpper(strings.TrimSpace(text))
	if !ok || checkHeader(method, "") != nil || method == http.MethodHead || method == http.MethodConnect {
		return "", fmt.Errorf("%q is no method for it", v.String())
	}
	return method, nil
}

// parseBody reads a body: text, as nothing says how anything else is to be written.
func parseBody(v sobek.Value) (string, error) {
	text, ok := v.Export().(string)
	if !ok {
		return "", fmt.Errorf("%s is no string: JSON.stringify makes one of an object", v)
	}
	return text, nil
}
