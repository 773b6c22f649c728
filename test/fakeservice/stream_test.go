package fakeservice

import (
	"bufio"
	"errors"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A resetRecorder calls a function when the connection is to be reset.
type resetRecorder struct {
	*httptest.ResponseRecorder
	onReset func()
}

func (r resetRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r.onReset()
	return nil, nil, errors.New("no connection")
}

// A client requests the end of its stream as soon as it notices the reset. The record must then show that the stream
// had ended without a request.
func TestResetIsRecordedBeforeTheClientNotices(t *testing.T) {
	t.Parallel()
	c := &NoopClient{Client: Client{ID: "a"}}
	s := &Service{strike: Strike{Fault: Fault{Action: ActReset, From: 1, Count: 1}}}
	st := &noopStream{Service: s, client: c}
	st.Stream = &Stream{W: resetRecorder{httptest.NewRecorder(), func() {
		s.Mu.Lock()
		defer s.Mu.Unlock()
		s.EndStream(httptest.NewRecorder(), httptest.NewRequest("DELETE", "/", nil), &c.Client, true)
	}}}
	c.Begin(st.Stream)
	require.ErrorIs(t, st.serve(1, time.Now()), ErrOver)
	st.close()
	require.False(t, c.EndedOnRequest(), "the reset must precede the request")
}
