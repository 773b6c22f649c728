package sse

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/sse-soak/sse-soak/test/sockets"
)

// A framed is one connection of a scripted HTTP/2 server.
type framed struct {
	*http2.Framer
	t      testing.TB
	conn   net.Conn // perhaps of TLS
	tcp    *net.TCPConn
	line   *sockets.Line
	n      int // 0 for the first connection to the server
	block  bytes.Buffer
	fields *hpack.Encoder
	saw    []string // what the client sent in addition to requests, without acknowledgements of SETTINGS
}

// serveFrames starts a server that has said its first SETTINGS, and hands each connection to handle.
func serveFrames(t testing.TB, handle func(p *framed)) string {
	return serveSilent(t, func(p *framed) {
		if p.WriteSettings() == nil { // otherwise the client has gone, perhaps with its test
			handle(p)
		}
	})
}

// serveSilent is serveFrames without SETTINGS. It speaks TLS to clients that do.
func serveSilent(t testing.TB, handle func(p *framed)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config := sockets.ServerTLS().Clone()
	config.NextProtos = []string{"h2"}
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			tcp, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = tcp.Close() }()
				conn, line := accept(tcp, config)
				preface := make([]byte, len(http2.ClientPreface))
				if _, err := io.ReadFull(conn, preface); err != nil || string(preface) != http2.ClientPreface {
					return
				}
				p := &framed{Framer: http2.NewFramer(conn, bufio.NewReader(conn)), t: t, conn: conn, tcp: tcp.(*net.TCPConn), line: line, n: n}
				p.fields = hpack.NewEncoder(&p.block)
				p.AllowIllegalWrites = true
				p.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
				handle(p)
				if secure, ok := conn.(*tls.Conn); ok {
					_ = secure.CloseWrite()
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return "http://" + l.Addr().String()
}

// next reads up to a frame of a kind; an error where the client has gone.
func (p *framed) next(kind http2.FrameType) (http2.Frame, error) {
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return nil, err
		}
		if f.Header().Type == kind {
			return f, nil
		}
		p.note(f)
	}
}

func (p *framed) note(f http2.Frame) {
	switch f := f.(type) {
	case *http2.RSTStreamFrame:
		p.saw = append(p.saw, fmt.Sprintf("RST_STREAM %d %v", f.StreamID, f.ErrCode))
	case *http2.GoAwayFrame:
		p.saw = append(p.saw, fmt.Sprintf("GOAWAY %v", f.ErrCode))
	case *http2.PingFrame:
		p.saw = append(p.saw, fmt.Sprintf("PING %v %s", f.IsAck(), f.Data[:]))
	}
}

// request waits for the next request, and returns its stream.
func (p *framed) request() uint32 {
	f, err := p.next(http2.FrameHeaders)
	if err != nil {
		return 0
	}
	return f.Header().StreamID
}

// headers sends a header list: names and values in turn.
func (p *framed) headers(id uint32, end bool, fields ...string) {
	_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.encoded(fields...), EndHeaders: true, EndStream: end})
}

func (p *framed) encoded(fields ...string) []byte {
	p.block.Reset()
	for i := 0; i+1 < len(fields); i += 2 {
		_ = p.fields.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(p.block.Bytes())
}

// accepted answers the next request with the head of an event stream.
func (p *framed) accepted() uint32 {
	id := p.request()
	p.headers(id, false, ":status", "200", "content-type", "text/event-stream")
	return id
}

func (p *framed) data(id uint32, text string) { _ = p.WriteData(id, false, []byte(text)) }

func (p *framed) finish(id uint32) { _ = p.WriteData(id, true, nil) }

// ended reads until the client has gone, and returns what it sent.
func (p *framed) ended() string {
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return strings.Join(p.saw, ", ")
		}
		p.note(f)
	}
}

// inPieces sends what is said meanwhile in pieces of some bytes.
func (p *framed) inPieces(size int, say func()) {
	(&peer{line: p.line}).inPieces(size, say)
}

// over2 runs a test of streams over HTTP/2 by each way, with the URL of a scripted server.
func over2(t *testing.T, handle func(p *framed), test func(t *testing.T, v *vu)) {
	t.Helper()
	over(t, ways, func(t *testing.T, w way) {
		v := w.vu(t)
		v.set("url", w.url(serveFrames(t, handle)))
		test(t, v)
	})
}

// url returns the URL of a server for this way.
func (w way) url(of string) string {
	if w.tls {
		return strings.Replace(of, "http:", "https:", 1)
	}
	return of
}
