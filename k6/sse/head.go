package sse

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// headReader reads a response head and refuses to read on past a bound.
type headReader struct {
	r    io.Reader
	left int
	err  error // the first one, which parsers hide behind their own
}

var errHeaderTooLong = fmt.Errorf("the response header exceeds %d bytes", maxHeaderBytes)

func (h *headReader) Read(p []byte) (int, error) {
	if h.left <= 0 {
		h.err = errHeaderTooLong
		return 0, h.err
	}
	n, err := h.r.Read(p[:min(len(p), h.left)])
	h.left -= n
	if err != nil && h.err == nil {
		h.err = err
	}
	return n, err
}

// getRequest tells ReadResponse which method was used; it reads nothing else of it.
var getRequest = &http.Request{Method: http.MethodGet}

var headReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, headBuffer) }}

// readHead reads the final response head. What was read beyond it goes to a.left.
func (a *answer) readHead(method string) error {
	br := headReaders.Get().(*bufio.Reader) // only these are put there
	hr := &headReader{r: a.conn, left: maxHeaderBytes}
	br.Reset(hr)
	defer func() {
		br.Reset(nil)
		headReaders.Put(br)
	}()
	asked := getRequest
	if method != http.MethodGet {
		asked = &http.Request{Method: method}
	}
	for range maxInterim {
		resp, err := http.ReadResponse(br, asked) //nolint:bodyclose // the body is read from a.conn, which the caller closes
		if err != nil {
			return cmp.Or(hr.err, err)
		}
		if resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		left, _ := br.Peek(br.Buffered())
		a.at = time.Now()
		a.left = bytes.Clone(left)
		a.status, a.proto, a.header = resp.StatusCode, resp.Proto, resp.Header
		a.frame = framingOf(resp)
		return nil
	}
	return fmt.Errorf("more than %d interim (1xx) responses", maxInterim)
}
