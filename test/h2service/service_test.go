package h2service

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// serve starts a service and says where.
func serve(t *testing.T, c Config) (s *Service, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	s = New(c)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return s, listener.Addr().String()
}

// certificate is one of httptest's, and a client's configuration that trusts it.
func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	transport, ok := s.Client().Transport.(*http.Transport)
	require.True(t, ok)
	return &tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}, transport.TLSClientConfig
}

// Each way to speak to it: every noop is there once and in order until the end, and the ledger says as many.
func TestEveryNoopComes(t *testing.T) {
	t.Parallel()
	const streams = 400 // whose ledger does not fit into a window
	server, client := certificate(t)
	for name, c := range map[string]struct {
		scheme      string
		http2       bool
		tls         *tls.Config
		connections int
	}{
		"HTTP/2 plain": {"http", true, nil, 4}, "HTTP/2 over TLS": {"https", true, server, 4},
		"HTTP/1.1 plain": {"http", false, nil, streams}, "HTTP/1.1 over TLS": {"https", false, server, streams},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, address := serve(t, Config{Interval: 50 * time.Millisecond, Slots: 5, StreamsPerConnection: 101, TLS: c.tls})
			protocols := &http.Protocols{}
			protocols.SetHTTP1(!c.http2)
			protocols.SetHTTP2(c.http2 && c.tls != nil)
			protocols.SetUnencryptedHTTP2(c.http2 && c.tls == nil)
			transport := &http.Transport{Protocols: protocols, TLSClientConfig: client.Clone()}
			defer transport.CloseIdleConnections()
			ask := func(method, path string) *http.Response {
				req, err := http.NewRequestWithContext(t.Context(), method, c.scheme+"://"+address+path, nil)
				require.NoError(t, err)
				resp, err := (&http.Client{Transport: transport}).Do(req)
				require.NoError(t, err)
				return resp
			}
			status := func(method, path string) int {
				resp := ask(method, path)
				require.NoError(t, resp.Body.Close())
				return resp.StatusCode
			}
			var bodies []*http.Response
			for n := range streams {
				resp := ask("GET", fmt.Sprintf("/event/connect?id=d-%d", n))
				require.Equal(t, 200, resp.StatusCode)
				require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
				bodies = append(bodies, resp)
			}
			require.Equal(t, http.StatusConflict, status("GET", "/event/connect?id=d-0"))
			require.Equal(t, http.StatusBadRequest, status("GET", "/event/connect?id=a/b"))
			require.Equal(t, http.StatusNotFound, status("DELETE", "/event/forcedisconnect?id=nobody"))
			require.GreaterOrEqual(t, len(s.present()), c.connections)
			received := make([]uint64, streams)
			var readers sync.WaitGroup
			for n, resp := range bodies {
				readers.Go(func() {
					defer resp.Body.Close()
					for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
						if number, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
							received[n]++
							if number != fmt.Sprint(received[n]) {
								t.Errorf("%s in place of %d", number, received[n])
							}
							if received[n] == 3 && status("DELETE", fmt.Sprintf("/event/forcedisconnect?id=d-%d", n)) != 200 {
								t.Errorf("d-%d cannot be ended", n)
							}
						}
					}
				})
			}
			readers.Wait()
			resp := ask("GET", "/event/ledger?prefix=d-")
			defer resp.Body.Close()
			rows := 0
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); rows++ {
				var r row
				require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
				require.Equal(t, row{
					ID: fmt.Sprintf("d-%d", rows), First: 1, Last: received[rows], Sent: received[rows], Streams: 1, Closed: "forcedisconnect", Opened: r.Opened, ClosedAt: r.ClosedAt,
				}, r)
			}
			require.Equal(t, streams, rows)
			for last, anew := range map[string]bool{"": true, "3": false} { // what an earlier run received is no loss of a later one
				req, err := http.NewRequestWithContext(t.Context(), "GET", c.scheme+"://"+address+"/event/connect?id=e-"+last, nil)
				require.NoError(t, err)
				first := func() string {
					resp, err := (&http.Client{Transport: transport}).Do(req)
					require.NoError(t, err)
					defer resp.Body.Close()
					lines := bufio.NewScanner(resp.Body)
					for lines.Scan() {
						if number, ok := strings.CutPrefix(lines.Text(), "id: "); ok && (number == "3" || resp.Request.Header.Get("Again") != "") {
							return number
						}
					}
					return ""
				}
				require.Equal(t, "3", first())
				req.Header.Set("Again", "yes")
				req.Header.Set("Last-Event-ID", last)
				require.Eventually(t, func() bool { return s.streams() == 0 }, 10*time.Second, time.Millisecond)
				require.Equal(t, anew, first() == "1")
			}
		})
	}
}

// streams is how many are open.
func (s *Service) streams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// A client with small windows: what one stream may not send holds no other one up, and comes when its window grows.
func TestWindowsAreKept(t *testing.T) {
	t.Parallel()
	_, address := serve(t, Config{Interval: 20 * time.Millisecond, Slots: 1, StreamsPerConnection: 2})
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte(http2.ClientPreface))
	require.NoError(t, err)
	f := http2.NewFramer(conn, conn)
	const noop = 42 // bytes of the first ones
	require.NoError(t, f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: noop + 10}))
	for _, number := range []uint32{1, 3, 5} {
		var block bytes.Buffer
		fields := hpack.NewEncoder(&block)
		for _, h := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", address}, {":path", fmt.Sprintf("/event/connect?id=d-%d", number)}} {
			require.NoError(t, fields.WriteField(hpack.HeaderField{Name: h[0], Value: h[1], Sensitive: true}))
		}
		require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: number, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}))
	}
	require.NoError(t, f.WriteWindowUpdate(3, 1000))
	came, pong := map[uint32]string{}, false
	take := func() {
		frame, err := f.ReadFrame()
		require.NoError(t, err)
		switch frame := frame.(type) {
		case *http2.DataFrame:
			came[frame.StreamID] += string(frame.Data())
		case *http2.RSTStreamFrame:
			came[frame.StreamID] = frame.ErrCode.String()
		case *http2.PingFrame:
			pong = frame.IsAck()
		}
	}
	for strings.Count(came[3], "data") < 5 {
		take()
	}
	require.Equal(t, 1, strings.Count(came[1], "data"), "it has no window for another one")
	require.Equal(t, "REFUSED_STREAM", came[5], "two are allowed")
	require.NoError(t, f.WriteWindowUpdate(1, 1000))
	require.NoError(t, f.WritePing(false, [8]byte{1}))
	for strings.Count(came[1], "data") < 5 || !pong {
		take()
	}
	require.Contains(t, came[1], "id: 5\n")
}
