package soak

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

func testObserver() *observer {
	r := newRecorder()
	o := r.observer(ledger.New("d-0", &ledger.Config{Interval: time.Second, LatenessLimit: time.Second}), false)
	return &o
}

func TestFindingExplainsTheRefusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		end  sseclient.Close
		note string
	}{
		{sseclient.Close{Reason: sseclient.ReasonStatus, Status: 503, Err: errors.New("unexpected status 503 Service Unavailable: the backend is full")}, "status 503: the backend is full"},
		{sseclient.Close{Reason: sseclient.ReasonStatus, Status: 503, Err: errors.New("unexpected status 503 Service Unavailable")}, "status 503"},
		{sseclient.Close{Reason: sseclient.ReasonStatus, Status: 520, Err: errors.New("unexpected status 520: down")}, "status 520: down"},
		{sseclient.Close{Reason: sseclient.ReasonTLS, Err: errors.New("TLS handshake: x509: certificate signed by unknown authority")}, "tls: TLS handshake: x509: certificate signed by unknown authority"},
		{sseclient.Close{Reason: sseclient.ReasonStatus, Status: 500, Err: errors.New("unexpected status 500 Internal Server Error: \x1b[31mred\r\n\ttext\xff")}, "status 500: [31mred text\uFFFD"},
		{sseclient.Close{Reason: sseclient.ReasonIdle, Err: errors.New("no byte")}, "idle"},
	} {
		o := testObserver()
		c.end.Retry = -1
		o.connecting(time.Now())
		o.closed(time.Now(), c.end)
		require.Equal(t, c.note, o.ledger.Record().Findings[0].Note)
	}
	text := explanation(sseclient.Close{Reason: sseclient.ReasonError, Err: errors.New(strings.Repeat("é", 300))}, nil)
	require.LessOrEqual(t, len(text), maxExplanation)
	require.True(t, utf8.ValidString(text))
}

func TestNamedEventsAreCounted(t *testing.T) {
	t.Parallel()
	o := testObserver()
	o.connect(time.Now())
	for range 3 {
		o.event(time.Now(), &eventstream.Event{Name: []byte("noop"), Data: []byte("0")})
	}
	o.event(time.Now(), &eventstream.Event{Name: []byte("message"), Data: []byte("0")})
	require.Equal(t, []ledger.EventCount{{Name: "noop", Count: 3}}, o.ledger.Record().Others)
	require.EqualValues(t, 1, o.ledger.Record().Received)

	for n := range 2 * maxEventNames {
		o.recorder.eventName(fmt.Append(nil, n), nil)
	}
	require.Len(t, o.recorder.names, maxEventNames, "event names must use bounded memory")
}
