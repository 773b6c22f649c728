package sse

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/sse-soak/sse-soak/test/sockets"
)

// A framePeer is the server side of one HTTP/2 connection, whose frames a test writes.
type framePeer struct {
	*http2.Framer
	t      testing.TB
	conn   net.Conn // with TLS if the client uses TLS
	tcp    *net.TCPConn
	line   *sockets.BufferedConn
	n      int // index of the connection, from 0
	block  bytes.Buffer
	fields *hpack.Encoder // writes to block
	log    []string       // RST_STREAM, GOAWAY and PING frames of the client
}

// serveFrames starts a server that sends SETTINGS and then calls handle for each connection.
func serveFrames(t testing.TB, handle func(p *framePeer)) string {
	return serveSilent(t, func(p *framePeer) {
		if p.WriteSettings() == nil { // the client has not disconnected
			handle(p)
		}
	})
}

// serveSilent is like serveFrames, but sends no SETTINGS. It accepts clients with and without TLS.
func serveSilent(t testing.TB, handle func(p *framePeer)) string {
	t.Helper()
	config := sockets.ServerTLS().Clone()
	config.NextProtos = []string{"h2"}
	var count atomic.Int32
	return "http://" + sockets.Serve(t, func(tcp net.Conn) {
		n := int(count.Add(1)) - 1
		conn, line := accept(tcp, config)
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(conn, preface); err != nil || string(preface) != http2.ClientPreface {
			return
		}
		p := &framePeer{Framer: http2.NewFramer(conn, bufio.NewReader(conn)), t: t, conn: conn, tcp: tcp.(*net.TCPConn), line: line, n: n}
		p.fields = hpack.NewEncoder(&p.block)
		p.AllowIllegalWrites = true
		p.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		handle(p)
		if secure, ok := conn.(*tls.Conn); ok {
			_ = secure.CloseWrite()
		}
	})
}

// next returns the next frame of a type. It logs other frames.
func (p *framePeer) next(kind http2.FrameType) (http2.Frame, error) {
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

func (p *framePeer) note(f http2.Frame) {
	switch f := f.(type) {
	case *http2.RSTStreamFrame:
		p.log = append(p.log, fmt.Sprintf("RST_STREAM %d %v", f.StreamID, f.ErrCode))
	case *http2.GoAwayFrame:
		p.log = append(p.log, fmt.Sprintf("GOAWAY %v", f.ErrCode))
	case *http2.PingFrame:
		p.log = append(p.log, fmt.Sprintf("PING %v %s", f.IsAck(), f.Data[:]))
	}
}

// request waits for the next request and returns its stream ID, or 0 if the client has disconnected.
func (p *framePeer) request() uint32 {
	f, err := p.next(http2.FrameHeaders)
	if err != nil {
		return 0
	}
	return f.Header().StreamID
}

// headers sends header fields: alternating names and values.
func (p *framePeer) headers(id uint32, end bool, fields ...string) {
	_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.encode(fields...), EndHeaders: true, EndStream: end})
}

// encode returns the encoded header fields: alternating names and values.
func (p *framePeer) encode(fields ...string) []byte {
	p.block.Reset()
	for i := 0; i+1 < len(fields); i += 2 {
		_ = p.fields.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(p.block.Bytes())
}

// acceptStream responds to the next request with the head of an event stream, and returns the stream ID.
func (p *framePeer) acceptStream() uint32 {
	id := p.request()
	p.headers(id, false, ":status", "200", "content-type", "text/event-stream")
	return id
}

func (p *framePeer) data(id uint32, text string) { _ = p.WriteData(id, false, []byte(text)) }

func (p *framePeer) finish(id uint32) { _ = p.WriteData(id, true, nil) }

// readAll reads until the client disconnects, and returns the logged frames.
func (p *framePeer) readAll() string {
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return strings.Join(p.log, ", ")
		}
		p.note(f)
	}
}

// sendInPieces sends the data that write writes, in pieces of size bytes.
func (p *framePeer) sendInPieces(size int, write func()) {
	(&peer{line: p.line}).sendInPieces(size, write)
}

// runH2 runs a test with an HTTP/2 server whose frames handle sends.
func runH2(t *testing.T, handle func(p *framePeer), test func(t *testing.T, v *vu)) {
	t.Helper()
	runTransports(t, mixedTransports, func(t *testing.T, w transport) {
		v := w.vu(t)
		v.set("url", w.url(serveFrames(t, handle)))
		test(t, v)
	})
}

// url returns the address of a server with the scheme of the transport.
func (w transport) url(address string) string {
	if w.tls {
		return strings.Replace(address, "http:", "https:", 1)
	}
	return address
}
