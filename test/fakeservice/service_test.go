package fakeservice

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	testInterval = 60 * time.Millisecond
	maxDelay     = 10 * time.Second // on a busy machine
)

func testService(t *testing.T, spec ServiceSpec, s Strike) (*Service, string) {
	t.Helper()
	spec.Schedule.Interval, spec.Schedule.Phase = testInterval, PhaseInterval
	if spec.Lines == "" {
		spec.Lines = "\n"
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	service := StartService(spec, s, l)
	t.Cleanup(service.Stop)
	return service, "http://" + l.Addr().String()
}

// readStream opens the stream of client a, requests its end after a time, and returns its data fields and ids. patience
// is the maximum time from that request to the end of the stream, because the proxy may drop the end.
func readStream(t *testing.T, url string, after, patience time.Duration) (data, ids []string, err error) {
	t.Helper()
	client := http.Client{Timeout: after + patience}
	resp, err := client.Get(url + "/event/connect?id=a")
	require.NoError(t, err)
	defer resp.Body.Close()
	timer := time.AfterFunc(after, func() {
		req, _ := http.NewRequest(http.MethodDelete, url+"/event/forcedisconnect?id=a", nil)
		if response, err := http.DefaultClient.Do(req); err == nil {
			_ = response.Body.Close()
		}
	})
	defer timer.Stop()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, text)
		}
		if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, text)
		}
	}
	return data, ids, lines.Err()
}

// The record of the service matches the noops that a client receives, even with a fault.
func TestRecordMatchesTheStreams(t *testing.T) {
	for _, c := range []struct {
		act, framing string
		ids, data    string
		lost         []uint64
		err          error
	}{
		{"", "chunks", "1 2 3 4 5", "00000", nil, nil},
		{"", "split", "1 2 3 4 5", "00000", nil, nil},
		{"", "close", "1 2 3 4 5", "00000", nil, nil},
		{ActLose, "chunks", "1 2 4 5", "0000", []uint64{3}, nil},
		{ActRepeat, "chunks", "1 2 3 3 4 5", "000000", nil, nil},
		{ActSwap, "chunks", "1 2 4 3 5", "00000", nil, nil},
		{ActCorrupt, "chunks", "1 2 3 4 5", "00100", nil, nil},
		{ActSkip, "chunks", "1 2 3 4 5", "00000", []uint64{0}, nil},
		{ActTruncate, "chunks", "1 2", "00", []uint64{3}, io.ErrUnexpectedEOF},
	} {
		t.Run(c.act+"/"+c.framing, func(t *testing.T) {
			t.Parallel()
			s, url := testService(t, ServiceSpec{IDs: IDsNumbers, Ledger: true, Format: Format{Framing: c.framing, BOM: true}, Comments: true},
				Strike{Fault: Fault{Action: c.act, From: 3, Count: 1}})
			data, ids, err := readStream(t, url, 7*testInterval, maxDelay)
			require.ErrorIs(t, err, c.err)
			require.True(t, strings.HasPrefix(strings.Join(ids, " "), c.ids), ids) // on a busy machine, more noops may arrive before the end
			require.True(t, strings.HasPrefix(strings.Join(data, ""), c.data), data)
			resp, err := http.Get(url + "/event/ledger?prefix=a")
			require.NoError(t, err)
			defer resp.Body.Close()
			ledger, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			s.Stop()
			client := s.client("a")
			require.JSONEq(t, fmt.Sprintf(`{"id":"a","first":1,"last":%[1]d,"sent":%[1]d,"slow":false}`, client.numbers), string(ledger))
			var lost []uint64
			for _, n := range client.Noops {
				if n.Lost(time.Time{}) {
					lost = append(lost, n.Number)
				}
			}
			require.Equal(t, c.lost, lost)
		})
	}
}

// Over HTTP/2, streams share connections, up to the limit of streams per connection.
func TestStreamsOverHTTP2(t *testing.T) {
	t.Parallel()
	tlsServer := httptest.NewTLSServer(nil)
	defer tlsServer.Close()
	trustedTransport, ok := tlsServer.Client().Transport.(*http.Transport)
	require.True(t, ok)
	for scheme, config := range map[string]*tls.Config{
		"http": nil, "https": {Certificates: tlsServer.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}},
	} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			spec := NewSpec(testInterval, PhaseRandom, 5)
			spec.TLS = config
			t.Cleanup(StartService(spec, Strike{}, l).Stop)
			var dials atomic.Int32
			transport := &http.Transport{Protocols: &http.Protocols{}, TLSClientConfig: trustedTransport.TLSClientConfig.Clone()}
			transport.Protocols.SetHTTP2(true)
			transport.Protocols.SetUnencryptedHTTP2(scheme == "http")
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				dials.Add(1)
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}
			t.Cleanup(transport.CloseIdleConnections)
			for n := range 10 { // all are open at the end of the loop
				resp, err := (&http.Client{Transport: transport}).Get(fmt.Sprintf("%s://%s/event/connect?id=d-%d", scheme, l.Addr(), n))
				require.NoError(t, err)
				t.Cleanup(func() { resp.Body.Close() })
				require.Equal(t, http.StatusOK, resp.StatusCode)
				defer func() {
					text := make([]byte, len("id: 1\n"))
					_, err := io.ReadFull(resp.Body, text)
					require.NoError(t, err)
					require.Equal(t, "id: 1\n", string(text))
				}()
			}
			require.GreaterOrEqual(t, dials.Load(), int32(2))
			require.Less(t, dials.Load(), int32(10))
		})
	}
}

// The service records a noop as lost if the proxy drops it after the service has sent it.
func TestRecordIncludesLossesOfTheProxy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind string
		err  bool
		lost int // number of the first lost noop; 0: none is lost
	}{{ProxyReset, true, 0}, {ProxyMidFrame, true, 3}, {ProxyVanish, true, 4}, {ProxyPause, false, 0}, {ProxyDribble, false, 0}, {ProxyMerge, false, 0}} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			s, url := testService(t, ServiceSpec{IDs: IDsNumbers, Format: Format{Framing: "chunks"}}, Strike{})
			spec := ProxySpec{Action: c.kind, Clients: []string{"a"}, Noop: 3, Delay: testInterval / 3}
			proxy, err := StartProxy(spec, strings.TrimPrefix(url, "http://"), s)
			require.NoError(t, err)
			t.Cleanup(proxy.Stop)
			patience := maxDelay
			if c.kind == ProxyVanish {
				patience = time.Second
			}
			_, ids, err := readStream(t, proxy.URL, 6*testInterval, patience)
			require.Equal(t, c.err, err != nil, "%v %v", ids, err)
			s.Stop()
			d, lost := s.client("a"), 0
			for _, n := range d.Noops {
				if lost == 0 && n.Lost(d.CutAt) {
					lost = n.Slot
				}
			}
			require.Equal(t, c.lost, lost)
		})
	}
}

func TestReconnectReplaysMissedNoops(t *testing.T) {
	t.Parallel()
	s, url := testService(t, ServiceSpec{IDs: IDsNumbers, Format: Format{Framing: "chunks"}, Resume: true}, Strike{Fault: Fault{Action: ActClose, From: 3, Count: 1}})
	_, ids, err := readStream(t, url, time.Minute, maxDelay)
	require.NoError(t, err)
	require.Equal(t, "1 2", strings.Join(ids, " "))
	time.Sleep(2 * testInterval)
	req, err := http.NewRequest(http.MethodGet, url+"/event/connect?id=a", nil)
	require.NoError(t, err)
	req.Header.Set("Last-Event-ID", "2")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	d, next := s.client("a"), 3
	lines := bufio.NewScanner(resp.Body)
	for live := false; !live && lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			require.Equal(t, strconv.Itoa(next), id)
			s.Mu.Lock()
			live = !d.Noops[next-1].Disconnected && next > 3 // the third noop was due before the client disconnected
			s.Mu.Unlock()
			next++
		}
	}
	s.Stop()
	for _, n := range d.Noops {
		require.False(t, n.Lost(time.Time{}), "the noop must have been sent: %+v", n)
	}
}

// With SlowKeep, the publisher waits while the queue of a client is full, so no message is lost.
func TestFullQueueKeepsMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Service{ServiceSpec: ServiceSpec{Slow: SlowKeep}}
		st := &noopStream{Stream: &Stream{ClientDone: make(chan struct{}), inbox: make(chan string, 1)}}
		st.inbox <- "first"
		go s.handleFullQueue(httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), st, "second")
		synctest.Wait()
		require.Equal(t, "first", <-st.inbox)
		synctest.Wait()
		require.Len(t, st.inbox, 1)
	})
}

func TestNoStreamStartsAfterStop(t *testing.T) {
	t.Parallel()
	hub := (&Hub{}).Start(t)
	require.True(t, hub.AddHandler(), "a running hub must accept streams")
	hub.Handlers.Done()
	hub.Stop()
	require.False(t, hub.AddHandler(), "a stopped hub must refuse streams")
	w := httptest.NewRecorder()
	hub.ServeHTTP(w, httptest.NewRequest("GET", "/sub/news", nil))
	require.Empty(t, w.Body.String(), "no stream may be opened")
}

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
