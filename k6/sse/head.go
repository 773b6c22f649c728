package sse

import (
	"bytes"
	"net/http"
	"time"

	"github.com/sse-soak/sse-soak/internal/http1"
)

const errHeaderTooLong = http1.HeadTooLongError(http1.MaxHead)

// readHead reads the final response head. What was read beyond it goes to a.left.
func (a *answer) readHead(method string) error {
	r := http1.Borrow(a.conn)
	defer r.Return()
	resp, err := r.Head(&http.Request{Method: method}) //nolint:bodyclose // the body is read from a.conn, which the caller closes
	if err != nil {
		return err
	}
	a.at = time.Now()
	a.left = bytes.Clone(r.Buffered())
	a.status, a.proto, a.header = resp.StatusCode, resp.Proto, resp.Header
	a.frame = framingOf(resp)
	return nil
}
