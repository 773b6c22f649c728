package sse

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"

	"github.com/sirupsen/logrus"
)

// httpDebug logs a request and the head of its response as the option http-debug has k6/http log them. The body of a
// stream has no end: it is not logged. nil logs nothing.
type httpDebug struct {
	log  logrus.FieldLogger
	full bool // with the body of the request
}

func (d *dialer) debug() *httpDebug {
	option := d.state.Options.HTTPDebug.String
	if option == "" {
		return nil
	}
	fields := logrus.Fields{}
	for _, more := range []map[string]string{d.tags.Tags.Map(), d.tags.Metadata} {
		for name, value := range more {
			fields[name] = value
		}
	}
	maps.Copy(fields, logrus.Fields{"source": "http-debug", "vu": d.state.VUID, "iter": d.state.Iteration, "request_id": rand.Text()})
	return &httpDebug{log: d.state.Logger.WithFields(fields), full: option == "full"}
}

// send sends a request. What only its proxy is told is not logged: a user with a password.
func (h *httpDebug) send(r *request, to *answer) error {
	h.tell(r)
	return r.send(to.conn, to.proxy)
}

// tell logs a request.
func (h *httpDebug) tell(r *request) {
	if h == nil {
		return
	}
	var said bytes.Buffer
	_ = r.send(&said, nil) // to a buffer: what is wrong with the request is said when it is sent
	head, body, _ := bytes.Cut(said.Bytes(), []byte("\r\n\r\n"))
	if !h.full {
		body = nil
	}
	h.log.Infof("Request:\n%s\n\n%s\n", bytes.ReplaceAll(head, []byte("\r\n"), []byte("\n")), body)
}

func (h *httpDebug) answered(a *answer) {
	if h == nil {
		return
	}
	var head bytes.Buffer
	_ = a.header.Write(&head) // to a buffer: it has no error
	h.log.Infof("Response:\n%s\n", fmt.Sprintf("%s %d %s\n%s", a.proto, a.status, http.StatusText(a.status), bytes.ReplaceAll(head.Bytes(), []byte("\r\n"), []byte("\n"))))
}
