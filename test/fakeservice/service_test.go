package fakeservice

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	testInterval = 60 * time.Millisecond
	busy         = 10 * time.Second // maximum delay on a busy machine
)

func testService(t *testing.T, spec ServiceSpec, s Strike) (*Service, string) {
	t.Helper()
	spec.Schedule.Interval, spec.Schedule.Phase = testInterval, PhaseConnect
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
// is the time until the end of the stream, which the wire may drop.
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

// The record of the service matches what a client receives, for every kind of fault of noops.
func TestRecordMatchesTheStreams(t *testing.T) {
	const hold = 10*testInterval + testInterval/2
	for _, c := range []struct {
		act       string
		ids, data string
		lost      []uint64
	}{
		{"", "1 2 3 4 5 6", "000000", nil},
		{ActLose, "1 2 4 5 6", "00000", []uint64{3}},
		{ActRepeat, "1 2 3 3 4 5 6", "0000000", nil},
		{ActSwap, "1 2 4 3 5 6", "000000", nil},
		{ActCorrupt, "1 2 3 4 5 6", "001000", nil},
		{ActSkip, "1 2 3 4 5 6", "000000", []uint64{0}},
	} {
		for _, framing := range []string{"chunks", "split", "close"} {
			t.Run(c.act+"/"+framing, func(t *testing.T) {
				t.Parallel()
				s, url := testService(t, ServiceSpec{IDs: IDsNumbers, Ledger: true, Format: Format{Framing: framing, BOM: true}, Comments: true},
					Strike{Fault: Fault{Action: c.act, From: 3, Count: 1}})
				data, ids, err := readStream(t, url, hold, busy)
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(strings.Join(ids, " "), c.ids), ids) // on a busy machine the request to end the stream is late
				require.True(t, strings.HasPrefix(strings.Join(data, ""), c.data), data)
				s.Stop()
				var lost []uint64
				for _, n := range s.client("a").Noops {
					if n.Lost(time.Time{}) {
						lost = append(lost, n.Number)
					}
				}
				require.Equal(t, c.lost, lost)
			})
		}
	}
}

// Over HTTP/2 streams share connections, and each receives the same as over HTTP/1.1.
func TestStreamsOverHTTP2(t *testing.T) {
	t.Parallel()
	tlsServer := httptest.NewTLSServer(nil)
	defer tlsServer.Close()
	trustedTransport, ok := tlsServer.Client().Transport.(*http.Transport)
	require.True(t, ok)
	server := &tls.Config{Certificates: tlsServer.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
	for name, tt := range map[string]struct {
		http2       bool
		tls         *tls.Config
		connections int32
	}{
		"HTTP/2": {true, nil, 4}, "HTTP/2 over TLS": {true, server, 4}, "HTTP/1.1": {false, nil, 20}, "HTTP/1.1 over TLS": {false, server, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			spec := New(testInterval, PhaseRandom, 5)
			spec.TLS = tt.tls
			service := StartService(spec, Strike{}, l)
			defer service.Stop()
			var dials atomic.Int32
			transport := &http.Transport{Protocols: &http.Protocols{}, TLSClientConfig: trustedTransport.TLSClientConfig.Clone()}
			transport.Protocols.SetHTTP1(!tt.http2)
			transport.Protocols.SetHTTP2(tt.http2 && tt.tls != nil)
			transport.Protocols.SetUnencryptedHTTP2(tt.http2 && tt.tls == nil)
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				dials.Add(1)
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}
			defer transport.CloseIdleConnections()
			url := "http://" + l.Addr().String()
			if tt.tls != nil {
				url = "https://" + l.Addr().String()
			}
			var streams sync.WaitGroup
			var opened sync.WaitGroup // no stream ends before all are open, so each connection carries five of them
			opened.Add(20)
			for n := range 20 {
				resp, err := (&http.Client{Transport: transport}).Get(fmt.Sprintf("%s/event/connect?id=d-%d", url, n))
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, resp.StatusCode)
				opened.Done()
				streams.Go(func() {
					defer resp.Body.Close()
					opened.Wait()
					next := 1
					for lines := bufio.NewScanner(resp.Body); next < 5 && lines.Scan(); {
						if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
							if id != strconv.Itoa(next) {
								t.Errorf("noop %s in place of %d", id, next)
							}
							next++
						}
					}
				})
			}
			streams.Wait()
			require.GreaterOrEqual(t, dials.Load(), tt.connections)
			if tt.http2 {
				require.Less(t, dials.Load(), int32(20))
			}
		})
	}
}

func TestTruncatedStream(t *testing.T) {
	t.Parallel()
	_, url := testService(t, ServiceSpec{IDs: IDsNumbers, Format: Format{Framing: "chunks"}}, Strike{Fault: Fault{Action: ActTruncate, From: 3, Count: 1}})
	_, ids, err := readStream(t, url, time.Minute, busy)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "1 2", strings.Join(ids[:2], " "))
}

func TestLedgerCountsLosses(t *testing.T) {
	t.Parallel()
	_, url := testService(t, ServiceSpec{IDs: IDsNumbers, Ledger: true, Format: Format{Framing: "chunks"}}, Strike{Fault: Fault{Action: ActLose, From: 3, Count: 1}})
	_, ids, err := readStream(t, url, 4*testInterval+testInterval/2, busy)
	require.NoError(t, err)
	last := ids[len(ids)-1]
	resp, err := http.Get(url + "/event/ledger?prefix=a")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"a","first":1,"last":`+last+`,"sent":`+last+`,"slow":false}`, string(text))
}

// The service records a noop as lost if the wire drops it after the service has sent it.
func TestRecordIncludesLossesOfTheWire(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind string
		err  bool
		lost int // number of the first lost noop
	}{{WireReset, true, 0}, {WireMidFrame, true, 3}, {WireVanish, true, 4}, {WirePause, false, 0}, {WireDribble, false, 0}, {WireMerge, false, 0}} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			s, url := testService(t, ServiceSpec{IDs: IDsNumbers, Format: Format{Framing: "chunks"}}, Strike{})
			spec := WireSpec{Action: c.kind, Clients: []string{"a"}, Noop: 3, Delay: testInterval / 3}
			proxy, err := StartWire(spec, strings.TrimPrefix(url, "http://"), s)
			require.NoError(t, err)
			t.Cleanup(proxy.Stop)
			patience := busy
			if c.kind == WireVanish {
				patience = time.Second
			}
			_, ids, err := readStream(t, proxy.URL, 8*testInterval, patience)
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
	_, ids, err := readStream(t, url, time.Minute, busy)
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
			live = !d.Noops[next-1].Disconnected && next > 3 // the third was due before the client disconnected
			s.Mu.Unlock()
			next++
		}
	}
	s.Stop()
	for _, n := range d.Noops {
		require.False(t, n.Lost(time.Time{}), fmt.Sprint(n))
	}
}
