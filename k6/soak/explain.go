package soak

import (
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

const maxExplanation = 200 // bytes

// explanation returns the error of a failed attempt or stream, without secrets. For an unexpected status, it returns
// the text of the response. It returns "" for reasons that need no explanation.
func explanation(c sseclient.Close, secrets *credentials) string {
	if c.Err == nil {
		return ""
	}
	switch c.Reason {
	case sseclient.ReasonIdle, sseclient.ReasonServer, sseclient.ReasonTruncated, sseclient.ReasonReset, sseclient.ReasonClient, sseclient.ReasonInterrupted:
		return ""
	}
	text := secrets.hide(c.Err.Error())
	if c.Reason == sseclient.ReasonStatus {
		text = removeStatus(text, c.Status)
	}
	return format.Shorten(text, maxExplanation)
}

// removeStatus returns the text of an error without the status at its start.
func removeStatus(text string, status int) string {
	return strings.TrimPrefix(strings.TrimPrefix(text, "unexpected status "+http1.StatusText(status)), ": ")
}

// maxEventNames is the maximum number of event names that a runner stores.
const maxEventNames = 64

// eventName returns the name of an event without secrets. It reuses stored names, and stores up to maxEventNames.
func (r *recorder) eventName(name []byte, secrets *credentials) string {
	const maxLength = 64
	r.mu.Lock()
	defer r.mu.Unlock()
	if text, ok := r.names[string(name)]; ok {
		return text
	}
	text := format.Shorten(secrets.hide(string(name)), maxLength)
	if len(r.names) >= maxEventNames {
		return text
	}
	if r.names == nil {
		r.names = map[string]string{}
	}
	r.names[string(name)] = text
	return text
}
