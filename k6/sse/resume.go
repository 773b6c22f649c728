package sse

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

var errResume = errors.New(`must be "header", "none" or { query: "name" }`)

func parseResume(v sobek.Value) (resume sseclient.Resume, err error) {
	if obj, ok := v.(*sobek.Object); ok {
		for _, name := range obj.Keys() {
			if name != "query" {
				return resume, fmt.Errorf("unknown property %q; use query", name)
			}
			if resume.Query, ok = obj.Get(name).Export().(string); !ok || resume.Query == "" {
				return resume, fmt.Errorf("query must be the name of a parameter, got %q", obj.Get(name).String())
			}
		}
		if resume.Query != "" {
			return resume, nil
		}
		return resume, errResume
	}
	switch v.Export() {
	case "header":
		return resume, nil
	case "none":
		return sseclient.Resume{Off: true}, nil
	default:
		return resume, errResume
	}
}

// parseMethod parses the method of a request. It rejects HEAD and CONNECT, whose responses have no body.
func parseMethod(v sobek.Value) (string, error) {
	text, ok := v.Export().(string)
	method := strings.ToUpper(strings.TrimSpace(text))
	if !ok || sseclient.CheckHeader(method, "") != nil || method == http.MethodHead || method == http.MethodConnect {
		return "", fmt.Errorf("must be a method other than HEAD and CONNECT, got %q", v.String())
	}
	return method, nil
}

// parseBody parses a body. It rejects values other than strings, because they have no defined encoding.
func parseBody(v sobek.Value) (string, error) {
	text, ok := v.Export().(string)
	if !ok {
		return "", fmt.Errorf("must be a string, got %s; encode an object with JSON.stringify", v)
	}
	return text, nil
}
