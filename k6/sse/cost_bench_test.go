package sse

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// BenchmarkConnections holds SSE_BENCH_CONNECTIONS (default 2000) streams of a server
// in another process and broadcasts one noop to all of them b.N times. It reports
// what a connection and an event cost this process: resident bytes per connection,
// with all the garbage of connecting in it and after it was given back, and CPU time
// per event. "raw" is the least that is possible with a goroutine per connection.
func BenchmarkConnections(b *testing.B) {
	connections := 2000
	if n, err := strconv.Atoi(os.Getenv("SSE_BENCH_CONNECTIONS")); err == nil {
		connections = n
	}
	b.Run("raw", func(b *testing.B) { benchmarkConnections(b, connections, openRaw) })
	b.Run("EventSource", func(b *testing.B) { benchmarkConnections(b, connections, openSources) })
	b.Run("EventSource-TLS", func(b *testing.B) { benchmarkConnections(b, connections, openEncrypted) })
	for _, coding := range []string{"gzip", "br", "zstd"} {
		b.Run("EventSource-"+coding, func(b *testing.B) {
			benchmarkConnections(b, connections, func(b *testing.B, url string, n int, opened, event func()) func() {
				return openWith(b, url, n, opened, event, fmt.Sprintf("headers: { 'Accept-Encoding': %q }", coding))
			})
		})
	}
	b.Run("EventSource-HTTP2", func(b *testing.B) { benchmarkConnections(b, connections, openFramed) })
	b.Run("EventSource-HTTP2-TLS", func(b *testing.B) {
		benchmarkConnections(b, connections, func(b *testing.B, url string, n int, opened, event func()) func() {
			return openFramed(b, strings.Replace(url, "http:", "https:", 1), n, opened, event)
		})
	})
	b.Run("EventSource-onmessage", func(b *testing.B) { benchmarkConnections(b, connections, openListening) })
}

// opener opens n connections to url and calls back for each event.
type opener func(b *testing.B, url string, n int, opened, event func()) (closeAll func())

func benchmarkConnections(b *testing.B, n int, open opener) {
	server := startBenchServer(b)
	var opens, events atomic.Int64
	await := func(v *atomic.Int64, want int64) {
		for v.Load() < want {
			time.Sleep(time.Millisecond)
		}
	}
	debug.FreeOSMemory()
	before := residentBytes()
	closeAll := open(b, server.url, n, func() { opens.Add(1) }, func() { events.Add(1) })
	await(&opens, int64(n))
	round := int64(0)
	broadcast := func() {
		round++
		_, _ = io.WriteString(server.stdin, "\n")
		await(&events, round*int64(n))
	}
	for range 10 {
		broadcast()
	}
	asIs := residentBytes()
	debug.FreeOSMemory()
	settled := residentBytes()
	var ms, ms2 runtime.MemStats
	runtime.ReadMemStats(&ms)
	cpu := cpuTime()
	b.ResetTimer()
	for range b.N {
		broadcast()
	}
	b.StopTimer()
	cpu = cpuTime() - cpu
	runtime.ReadMemStats(&ms2)
	perConn := func(bytes int64) float64 { return float64(bytes) / float64(n) }
	b.ReportMetric(perConn(asIs-before), "rss-B/conn")
	b.ReportMetric(perConn(settled-before), "rss-given-back-B/conn")
	b.ReportMetric(perConn(int64(ms.HeapInuse)), "heap-B/conn")
	b.ReportMetric(perConn(int64(ms.HeapAlloc)), "live-B/conn")
	b.ReportMetric(perConn(int64(ms.StackInuse)), "stack-B/conn")
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N*n), "cpu-ns/event")
	b.ReportMetric(float64(ms2.Mallocs-ms.Mallocs)/float64(b.N*n), "allocs/event")
	b.ReportMetric(0, "ns/op")
	closeAll()
}

// openSources opens EventSources with a ledger and no JS per event.
func openSources(b *testing.B, url string, n int, opened, event func()) func() {
	return openWith(b, url, n, opened, event, "")
}

// openWith is openSources with another option.
func openWith(b *testing.B, url string, n int, opened, event func(), option string) func() {
	v := newVU(b)
	v.state.TLSConfig = &tls.Config{InsecureSkipVerify: true}
	v.set("newLedger", func() any { return testObserver{&countingLedger{opened: opened, event: event}} })
	return v.background(b, fmt.Sprintf(`
		for (let i = 0; i < %d; i++) {
			new EventSource(%q + "/event/connect?id=bench-" + i, { reconnect: false, ledger: newLedger(), %s });
		}`, n, url, option))
}

// openEncrypted opens the same over TLS: the server takes a connection for that by its first byte.
func openEncrypted(b *testing.B, url string, n int, opened, event func()) func() {
	return openWith(b, strings.Replace(url, "http:", "https:", 1), n, opened, event, "http: '1.1'")
}

// openFramed opens the same over HTTP/2, 100 streams on each connection.
func openFramed(b *testing.B, url string, n int, opened, event func()) func() {
	return openWith(b, url, n, opened, event, "http: '2', streamsPerConnection: 100")
}

// openListening opens EventSources with an onmessage handler.
func openListening(b *testing.B, url string, n int, opened, event func()) func() {
	v := newVU(b)
	v.set("opened", opened)
	v.set("event", event)
	return v.background(b, fmt.Sprintf(`
		const onopen = () => opened(), onmessage = () => event();
		for (let i = 0; i < %d; i++) {
			const s = new EventSource(%q + "/event/connect?id=bench-" + i, { reconnect: false });
			s.onopen = onopen;
			s.onmessage = onmessage;
		}`, n, url))
}

// background runs a script until the returned function ends the VU.
func (v *vu) background(b *testing.B, script string) func() {
	stop := make(chan struct{})
	go func() { // as k6 does all the time
		for range v.samples { // only drained
		}
	}()
	go func() {
		defer close(stop)
		_ = v.EventLoop.Start(func() error {
			_, err := v.VU.Runtime().RunString(script)
			return err
		})
	}()
	return func() {
		v.CancelContext()
		<-stop
		close(v.samples)
	}
}

type countingLedger struct {
	opened, event func()
}

func (l *countingLedger) Opened(time.Time)                    { l.opened() }
func (l *countingLedger) Event(time.Time, *eventstream.Event) { l.event() }

// openRaw opens connections with a goroutine and 512 bytes each and counts blank lines.
func openRaw(b *testing.B, url string, n int, opened, event func()) func() {
	dial := newVU(b).state.Dialer
	address := strings.TrimPrefix(url, "http://")
	var wg sync.WaitGroup
	conns := make([]net.Conn, n)
	for i := range n {
		wg.Go(func() {
			conn, err := dial.DialContext(context.Background(), "tcp", address)
			if err != nil {
				return
			}
			conns[i] = conn
			_, _ = fmt.Fprintf(conn, "GET /event/connect?id=bench-%d HTTP/1.1\r\nHost: %s\r\n\r\n", i, address)
			wg.Go(func() { readRaw(conn, opened, event) })
		})
	}
	return func() {
		for _, c := range conns {
			_ = c.Close()
		}
		wg.Wait()
	}
}

func readRaw(conn net.Conn, opened, event func()) {
	buf := make([]byte, 512)
	head := false
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		switch {
		case !head:
			head = true
			opened()
		case bytes.Contains(buf[:n], []byte("\n\n")):
			event()
		}
	}
}

func residentBytes() int64 {
	statm, _ := os.ReadFile("/proc/self/statm")
	pages, _ := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

type benchServer struct {
	url   string
	stdin io.Writer
}

// startBenchServer runs this test binary as a server: see TestMain.
func startBenchServer(b *testing.B) benchServer {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SSE_BENCH_SERVER=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	return benchServer{url: strings.TrimSpace(url), stdin: in}
}

// runBenchServer streams one numbered noop to every connection per line of stdin.
func runBenchServer() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	fmt.Println("http://" + l.Addr().String())
	certified := serverTLS().Clone()
	certified.NextProtos = []string{"h2", "http/1.1"}
	var mu sync.Mutex
	var framed []*benchFramed
	conns := map[string][]net.Conn{} // by their coding
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				conn, _ := accept(conn, certified)
				r := bufio.NewReader(conn)
				if start, err := r.Peek(3); err == nil && string(start) == "PRI" {
					f := &benchFramed{conn: conn}
					mu.Lock()
					framed = append(framed, f)
					mu.Unlock()
					f.serve(r, &mu)
					return
				}
				if r, err := http.ReadRequest(r); err == nil {
					coding := r.Header.Get("Accept-Encoding")
					mu.Lock() // a broadcast that the client asks for when it is open goes to it, too
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: "+coding+"\r\nTransfer-Encoding: chunked\r\n\r\n")
					conns[coding] = append(conns[coding], conn)
					mu.Unlock()
				}
			}()
		}
	}()
	var packed bytes.Buffer // all streams of a coding get the same bytes: all are open before the first event
	encoders := map[string]packer{}
	for coding, start := range packers {
		encoders[coding] = start(&packed)
	}
	lines := bufio.NewScanner(os.Stdin)
	for seq := 1; lines.Scan(); seq++ {
		event := fmt.Sprintf(": sent=%d\nid: %d\ndata: 0\n\n", time.Now().UnixMicro(), seq)
		mu.Lock()
		for _, f := range framed {
			f.broadcast(event)
		}
		for coding, all := range conns {
			body := event
			if e := encoders[coding]; e != nil {
				packed.Reset()
				_, _ = io.WriteString(e, event)
				_ = e.Flush()
				body = packed.String()
			}
			frame := []byte(fmt.Sprintf("%x\r\n%s\r\n", len(body), body))
			for _, c := range all {
				_, _ = c.Write(frame)
			}
		}
		mu.Unlock()
	}
}

// A benchFramed is the server's side of an HTTP/2 connection.
type benchFramed struct {
	conn net.Conn
	out  bytes.Buffer
	ids  []uint32
}

// serve answers each request with the head of an event stream.
func (f *benchFramed) serve(r io.Reader, mu *sync.Mutex) {
	_, _ = io.CopyN(io.Discard, r, int64(len(http2.ClientPreface)))
	in, out := http2.NewFramer(nil, r), http2.NewFramer(&f.out, nil)
	for _ = out.WriteSettings(); ; {
		mu.Lock()
		_, _ = f.conn.Write(f.out.Bytes())
		f.out.Reset()
		mu.Unlock()
		frame, err := in.ReadFrame()
		if err != nil {
			return
		}
		mu.Lock()
		if id := frame.Header().StreamID; frame.Header().Type == http2.FrameHeaders {
			f.ids = append(f.ids, id)
			var block bytes.Buffer
			fields := hpack.NewEncoder(&block)
			fields.SetMaxDynamicTableSize(0)
			_ = fields.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			_ = fields.WriteField(hpack.HeaderField{Name: "content-type", Value: "text/event-stream"})
			_ = out.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true})
		}
		mu.Unlock()
	}
}

// broadcast sends an event on each stream, as a service does that writes to one after the other.
func (f *benchFramed) broadcast(event string) {
	out := http2.NewFramer(&f.out, nil)
	for _, id := range f.ids {
		_ = out.WriteData(id, false, []byte(event))
	}
	_, _ = f.conn.Write(f.out.Bytes())
	f.out.Reset()
}
