package sseclient

import (
	"bytes"
	"fmt"

	"github.com/sse-soak/sse-soak/internal/http1"
)

// A Debug logs one request and the header of its response, but not the body of the response, which may have no end.
type Debug struct {
	Log  func(text string)
	Body bool // whether to log the body of the request, too
}

func (e *exchange) newDebug() *Debug {
	if e.debug == nil {
		return nil
	}
	return e.debug()
}

// request logs a request. Headers for a proxy are not logged: they may contain a password.
func (d *Debug) request(r *request) {
	if d == nil {
		return
	}
	var text bytes.Buffer
	_, _ = r.send(&text, nil) // the actual request returns the same error
	head, body, _ := bytes.Cut(text.Bytes(), []byte("\r\n\r\n"))
	if !d.Body {
		body = nil
	}
	d.Log(fmt.Sprintf("Request:\n%s\n\n%s\n", bytes.ReplaceAll(head, []byte("\r\n"), []byte("\n")), body))
}

func (d *Debug) response(r *Response) {
	if d == nil {
		return
	}
	var head bytes.Buffer
	_ = r.Header.Write(&head) // writing to a buffer does not fail
	lines := bytes.ReplaceAll(head.Bytes(), []byte("\r\n"), []byte("\n"))
	d.Log(fmt.Sprintf("Response:\n%s %s\n%s\n", r.Proto, http1.StatusText(r.Status), lines))
}
