package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sse-soak/sse-soak/internal/run/target"
)

const (
	rawBuffer    = 512             // size of the read buffer of a stream of the goroutine client in bytes
	closeTimeout = 5 * time.Second // time within which the service must close a half-closed stream; dial timeout of churn
	maxDials     = 100             // maximum number of concurrent dials, below the length of the accept queue
)

type holdOptions struct {
	Address string // host:port of the service
	Streams int
	Prefix  string // prefix of the client ids
	Epoll   bool   // one epoll loop reads all streams, and only counts noops; otherwise each stream has a goroutine
}

// A holdResult is the output of the client that keeps streams open.
type holdResult struct {
	Received uint64
	Missed   uint64         // noops whose numbers were skipped
	Errors   map[string]int // number of streams that could not be opened, by error
}

func (o holdOptions) request(n int) []byte {
	return fmt.Appendf(nil, "GET /event/connect?id=%s%d HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", o.Prefix, n, o.Address)
}

// hold opens all streams and reads them until ctx ends. Then it half-closes the connections and reads the rest.
func hold(ctx context.Context, o holdOptions) (holdResult, error) {
	if o.Epoll {
		return holdEpoll(ctx, o)
	}
	conns := make([]reader, o.Streams)
	dialer := net.Dialer{Timeout: 20 * time.Second}
	var dials errgroup.Group
	dials.SetLimit(maxDials)
	var readers sync.WaitGroup
	for i := range conns {
		dials.Go(func() error {
			c := &conns[i]
			if c.conn, c.err = dialer.DialContext(ctx, "tcp", o.Address); c.err != nil {
				return c.err
			}
			_, c.err = c.conn.Write(o.request(i))
			readers.Go(c.read) // in a new goroutine, because the stack of this one has grown
			return nil
		})
	}
	<-ctx.Done()
	_ = dials.Wait()
	// Half-closed connections let the client read the remaining data before the service closes the stream.
	for i := range conns {
		if tcp, ok := conns[i].conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
			_ = tcp.SetReadDeadline(time.Now().Add(closeTimeout))
		}
	}
	readers.Wait()
	sum := holdResult{Errors: map[string]int{}}
	for i := range conns {
		c := &conns[i]
		sum.Received += c.received
		sum.Missed += c.missed
		if c.err != nil {
			sum.Errors[c.err.Error()]++
		}
	}
	return sum, nil
}

// A reader is one stream of the goroutine client.
type reader struct {
	conn                   net.Conn
	received, missed, last uint64
	err                    error
}

func (c *reader) read() {
	defer c.conn.Close()
	lines := bufio.NewReaderSize(c.conn, rawBuffer)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		c.line(line)
	}
}

var (
	idField = []byte("id: ")
	noop    = []byte("data: 0\n")
)

// line counts a noop, and the numbers that an id skips. It ignores headers and the sizes of chunks.
func (c *reader) line(line []byte) {
	if id, ok := bytes.CutPrefix(line, idField); ok {
		n, _ := strconv.ParseUint(string(bytes.TrimSpace(id)), 10, 64)
		if n > c.last+1 {
			c.missed += n - c.last - 1
		}
		c.last = n
	} else if bytes.Equal(line, noop) {
		c.received++
	}
}

// churnWorkers is the number of streams that the churn client opens and ends concurrently.
const churnWorkers = 50

type churnOptions struct {
	Address    string        // host:port of the service
	Prefix     string        // prefix of the client ids
	Token      string        // bearer token of DELETE requests
	Delete     bool          // end each stream with a DELETE and read it to its end; otherwise reset it after the headers
	Duration   time.Duration // time after which the client opens no more streams
	MaxStreams int64         // maximum number of streams
}

// A churnResult is the output of the churn client.
type churnResult struct {
	Seconds      float64        // time from the first stream to the end of the last
	Connect, End []float64      // milliseconds to the headers of each stream, and to the end of each DELETE
	Errors       map[string]int // number of failed streams by error
}

// churn opens and ends streams until it reaches a limit of its options. A worker stops after ten errors.
func churn(ctx context.Context, o churnOptions) (churnResult, error) {
	limitedCtx, stop := context.WithTimeout(ctx, o.Duration)
	defer stop()
	sum, start := churnResult{Errors: map[string]int{}}, time.Now()
	var count atomic.Int64
	var mu sync.Mutex
	var workers sync.WaitGroup
	for n := range churnWorkers {
		workers.Go(func() {
			streams, requests := resettingClient(n, true), resettingClient(n, false)
			for i, failures := 0, 0; failures < 10 && limitedCtx.Err() == nil && count.Add(1) <= o.MaxStreams; i++ {
				connect, end, err := o.openAndEnd(ctx, streams, requests, fmt.Sprintf("%s%d-%d", o.Prefix, n, i))
				mu.Lock()
				if err != nil {
					failures++
					sum.Errors[err.Error()]++
				} else {
					sum.Connect, sum.End = append(sum.Connect, connect), append(sum.End, end...)
				}
				mu.Unlock()
			}
			requests.CloseIdleConnections()
		})
	}
	workers.Wait()
	sum.Seconds = time.Since(start).Seconds()
	return sum, nil
}

// openAndEnd opens a stream and ends it. It returns the milliseconds to the headers, and to the end of a DELETE.
func (o churnOptions) openAndEnd(ctx context.Context, streams, requests *http.Client, id string) (connect float64, end []float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel() // resets the stream
	start := time.Now()
	resp, err := do(ctx, streams, http.MethodGet, "http://"+o.Address+"/event/connect?id="+id, "")
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	connect = milliseconds(start)
	if !o.Delete {
		cancel()
		return connect, nil, nil
	}
	start = time.Now()
	endResp, err := do(ctx, requests, http.MethodDelete, "http://"+o.Address+"/event/forcedisconnect?id="+id, o.Token)
	if err != nil {
		return 0, nil, err
	}
	_, err = io.Copy(io.Discard, endResp.Body)
	end = append(end, milliseconds(start))
	_, readErr := io.Copy(io.Discard, resp.Body)
	return connect, end, errors.Join(err, endResp.Body.Close(), readErr)
}

func milliseconds(start time.Time) float64 { return float64(time.Since(start)) / 1e6 }

// do sends a request. A response with a status other than 200 is an error.
func do(ctx context.Context, client *http.Client, method, url, token string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.Join(errors.New(method+" answered "+resp.Status), resp.Body.Close())
	}
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) { // without addresses, so that equal errors are counted together
			err = errors.New(op.Op + ": " + op.Err.Error())
		}
		return nil, err
	}
	return resp, nil
}

// resettingClient returns a client that connects from a hundred addresses of the worker in turn, and closes connections
// with RST. Otherwise, the ports and the connection-tracking entries would run out: a closed connection occupies its
// port for a minute, and its entry for two.
func resettingClient(worker int, newConnections bool) *http.Client {
	const addresses = 100
	dials := 0
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: newConnections, DisableCompression: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			dialer := net.Dialer{Timeout: closeTimeout, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+dials%addresses), byte(1+worker))}}
			conn, err := dialer.DialContext(ctx, network, address)
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			return conn, err
		},
	}}
}

// handshakeOptions has the options of the loop that is compared with k6/x/handshake.
type handshakeOptions struct {
	Address     string // host:port of the service
	Certs       string // folder that infra/compose/certs creates
	Connections int
	Workers     int
}

// handshakes makes requests with a client certificate, each on a new connection, and returns the seconds for all.
func handshakes(ctx context.Context, o handshakeOptions) (float64, error) {
	conf, err := target.Certificates(o.Certs).Client()
	if err != nil {
		return 0, err
	}
	conf.ServerName, conf.MinVersion, conf.SessionTicketsDisabled = "localhost", tls.VersionTLS13, true
	start := time.Now()
	var count atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	for n := range o.Workers {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+n%32))}} // like the virtual users of k6
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: conf, DialContext: dialer.DialContext}}
		workers.Go(func() error {
			for count.Add(1) <= int64(o.Connections) {
				resp, err := do(ctx, client, http.MethodGet, "https://"+o.Address+"/healthz", "")
				if err != nil {
					return err
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					return err
				}
				_ = resp.Body.Close()
			}
			return nil
		})
	}
	err = workers.Wait()
	return time.Since(start).Seconds(), err
}
