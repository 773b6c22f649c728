package sse

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

var errResume = errors.New(`it must be "header", "none" or { query: "name" }`)

func parseResume(v sobek.Value) (by sseclient.Resume, err error) {
	if obj, ok := v.(*sobek.Object); ok {
		for _, name := range obj.Keys() {
			if name != "query" {
				return by, fmt.Errorf("%q is unknown: %w", name, errResume)
			}
			if by.Query, ok = obj.Get(name).Export().(string); !ok || by.Query == "" {
				return by, errors.New("query is no name of a parameter")
			}
		}
		if by.Query != "" {
			return by, nil
		}
		return by, errResume
	}
	switch v.Export() {
	case "header":
		return by, nil
	case "none":
		return sseclient.Resume{Off: true}, nil
	default:
		return by, errResume
	}
}

// parseMethod parses the method of a request. HEAD and CONNECT are invalid, because their responses have no body.
func parseMethod(v sobek.Value) (string, error) {
	text, ok := v.Export().(string)
	method := strings.ToUpper(strings.TrimSpace(text))
	if !ok || sseclient.CheckHeader(method, "") != nil || method == http.MethodHead || method == http.MethodConnect {
		return "", fmt.Errorf("%q is no method for it", v.String())
	}
	return method, nil
}

// parseBody parses a body. It must be a string, because other values have no defined encoding.
func parseBody(v sobek.Value) (string, error) {
	text, ok := v.Export().(string)
	if !ok {
		return "", fmt.Errorf("%s is no string: JSON.stringify makes one of an object", v)
	}
	return text, nil
}
