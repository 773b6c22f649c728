package sse

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// socketNames matches the addresses in an error of package net.
var socketNames = regexp.MustCompile(` read tcp .*:\d+->.*:\d+:`)

const oneStream = `
	const s = new EventSource(url, { http: "2", reconnect: false, idleTimeout: 4000 });
	s.onopen = () => log.push("open");
	s.onmessage = (e) => log.push(e.data.length > 100 ? e.data.length : e.data);
	s.onerror = (e) => log.push(e.reason + ":", e.message);
`

// The table has the frames of the server, the log of the script, and the frames that the client sends.
func TestH2Frames(t *testing.T) {
	t.Parallel()
	const ended = "server: the server ended the stream"
	violation := func(code, detail string) string {
		return "error: read the stream: the server violated HTTP/2 (" + code + "): " + detail
	}
	longText := strings.Repeat("x", 15_000)
	for _, tt := range []struct {
		name     string
		server   func(p *framePeer)
		want     string
		received string // frames of the client after the request; "-": not checked
	}{
		{"END_STREAM", func(p *framePeer) { id := p.acceptStream(); p.data(id, twoEvents); p.finish(id) }, "open a b " + ended, "GOAWAY NO_ERROR"},
		{"END_STREAM inside an event", func(p *framePeer) { _ = p.WriteData(p.acceptStream(), true, []byte(twoEvents+"data: c\n")) },
			"open a b truncated: the stream ended inside an event: unexpected EOF", "GOAWAY NO_ERROR"},
		{"END_STREAM in the header", func(p *framePeer) {
			p.headers(p.request(), true, ":status", "200", "content-type", "text/event-stream")
		}, "open " + ended, "GOAWAY NO_ERROR"},
		{"a trailer", func(p *framePeer) { id := p.acceptStream(); p.data(id, twoEvents); p.headers(id, true, "a", "b") }, "open a b " + ended, "GOAWAY NO_ERROR"},
		{"a byte at a time", func(p *framePeer) {
			id := p.request()
			p.sendInPieces(1, func() {
				p.headers(id, false, ":status", "200", "content-type", "text/event-stream")
				p.data(id, "data: a\n")
				p.data(id, "\ndata: b\n\n")
				p.finish(id)
			})
		}, "open a b " + ended, "GOAWAY NO_ERROR"},
		{"padding", func(p *framePeer) {
			id := p.request()
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, PadLength: 200,
				BlockFragment: p.encode(":status", "200", "content-type", "text/event-stream")})
			_ = p.WriteDataPadded(id, false, []byte("data: a\n\n"), make([]byte, 255))
			p.sendInPieces(7, func() { _ = p.WriteDataPadded(id, true, []byte("data: b\n\n"), make([]byte, 30)) })
		}, "open a b " + ended, "GOAWAY NO_ERROR"},
		{"padding and no data", func(p *framePeer) {
			id := p.acceptStream()
			_ = p.WriteDataPadded(id, false, nil, make([]byte, 10))
			_ = p.WriteDataPadded(id, false, nil, nil)
			_ = p.WriteDataPadded(id, true, []byte("data: a\n\n"), nil)
		}, "open a " + ended, "GOAWAY NO_ERROR"},
		{"more padding than the frame", func(p *framePeer) {
			_ = p.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, p.acceptStream(), []byte{5, 'a', 'b', 'c', 'd'})
		}, "open " + violation("PROTOCOL_ERROR", "the padding of DATA exceeds the frame"), "GOAWAY PROTOCOL_ERROR"},
		{"padding without its length", func(p *framePeer) { _ = p.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, p.acceptStream(), nil) },
			"open " + violation("FRAME_SIZE_ERROR", "DATA without the length of its padding"), "GOAWAY FRAME_SIZE_ERROR"},
		{"CONTINUATION", func(p *framePeer) {
			id, block := p.request(), p.encode(":status", "200", "content-type", "text/event-stream", "x", longText)
			p.sendInPieces(100, func() {
				_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:1]})
				_ = p.WriteContinuation(id, false, block[1:5])
				_ = p.WriteContinuation(id, false, nil)
				_ = p.WriteContinuation(id, true, block[5:])
			})
			_ = p.WriteData(id, true, []byte(twoEvents))
		}, "open a b " + ended, "GOAWAY NO_ERROR"},
		{"a missing CONTINUATION", func(p *framePeer) {
			id := p.request()
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.encode(":status", "200")})
			p.data(id, twoEvents)
		}, "error: read the response header: the server violated HTTP/2 (PROTOCOL_ERROR): DATA of stream 1 instead of CONTINUATION of stream 1", "GOAWAY PROTOCOL_ERROR"},
		{"CONTINUATION without HEADERS", func(p *framePeer) { _ = p.WriteContinuation(p.acceptStream(), true, nil) },
			"open " + violation("PROTOCOL_ERROR", "CONTINUATION: unexpected CONTINUATION for stream 1"), "GOAWAY PROTOCOL_ERROR"},
		{"CONTINUATION without end", func(p *framePeer) {
			id := p.request()
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.encode(":status", "200")})
			for range 10 {
				_ = p.WriteContinuation(id, false, p.encode("x", longText))
			}
		}, "too_long: read the response header: the response header exceeds 65536 bytes", "GOAWAY ENHANCE_YOUR_CALM"},
		{"a header list over the limit", func(p *framePeer) {
			id, block := p.request(), p.encode(":status", "200", "content-type", "text/event-stream", "a", strings.Repeat("y", 40_000), "b", strings.Repeat("y", 40_000))
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:16000]})
			for block = block[16000:]; len(block) > 16000; block = block[16000:] {
				_ = p.WriteContinuation(id, false, block[:16000])
			}
			_ = p.WriteContinuation(id, true, block)
		}, "too_long: read the response header: the response header exceeds 65536 bytes", "RST_STREAM 1 ENHANCE_YOUR_CALM, GOAWAY NO_ERROR"},
		{"an invalid header field", func(p *framePeer) { p.headers(p.request(), false, ":status", "200", "UPPER", "x") },
			"error: read the response header: the server violated HTTP/2 (PROTOCOL_ERROR): HEADERS: invalid header field name \"UPPER\"", "RST_STREAM 1 PROTOCOL_ERROR, GOAWAY NO_ERROR"},
		{"no status", func(p *framePeer) { p.headers(p.request(), false, "a", "b") },
			`error: read the response header: the server violated HTTP/2 (PROTOCOL_ERROR): invalid status "" in a response header`, "RST_STREAM 1 PROTOCOL_ERROR, GOAWAY NO_ERROR"},
		{"an invalid header list", func(p *framePeer) {
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: p.request(), EndHeaders: true, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0x0f}})
		}, "error: read the response header: the server violated HTTP/2 (COMPRESSION_ERROR): HEADERS: connection error: COMPRESSION_ERROR", "GOAWAY COMPRESSION_ERROR"},
		{"interim responses", func(p *framePeer) {
			id := p.request()
			for range 3 {
				p.headers(id, false, ":status", "103", "link", "x")
			}
			p.headers(id, false, ":status", "200", "content-type", "text/event-stream")
			_ = p.WriteData(id, true, []byte(twoEvents))
		}, "open a b " + ended, "GOAWAY NO_ERROR"},
		{"interim responses without end", func(p *framePeer) {
			for id := p.request(); ; {
				if p.headers(id, false, ":status", "103"); p.WritePing(false, [8]byte{}) != nil {
					return
				}
				if f, err := p.ReadFrame(); err != nil || f.Header().Type == http2.FrameRSTStream {
					p.note(f)
					return
				}
			}
		}, "error: read the response header: no final response after 10 interim (1xx) responses", "-"},
		{"DATA before HEADERS", func(p *framePeer) { p.data(p.request(), twoEvents) },
			"error: read the response header: the server violated HTTP/2 (PROTOCOL_ERROR): DATA before HEADERS", "RST_STREAM 1 PROTOCOL_ERROR, GOAWAY NO_ERROR"},
		{"a second header", func(p *framePeer) { id := p.acceptStream(); p.headers(id, false, ":status", "200") },
			"open " + violation("PROTOCOL_ERROR", "a second response header, which is not a trailer"), "RST_STREAM 1 PROTOCOL_ERROR, GOAWAY NO_ERROR"},
		{"DATA of stream 0", func(p *framePeer) { p.acceptStream(); p.data(0, "x") },
			"open " + violation("PROTOCOL_ERROR", "DATA of stream 0, which this client has not opened"), "GOAWAY PROTOCOL_ERROR"},
		{"DATA of an unopened stream", func(p *framePeer) { p.acceptStream(); p.data(7, "x") },
			"open " + violation("PROTOCOL_ERROR", "DATA of stream 7, which this client has not opened"), "GOAWAY PROTOCOL_ERROR"},
		{"HEADERS of a stream of the server", func(p *framePeer) { p.acceptStream(); p.headers(2, false, ":status", "200") },
			"open " + violation("PROTOCOL_ERROR", "HEADERS of stream 2, which this client has not opened"), "GOAWAY PROTOCOL_ERROR"},
		{"RST_STREAM of an unopened stream", func(p *framePeer) { p.acceptStream(); _ = p.WriteRSTStream(3, http2.ErrCodeNo) },
			"open " + violation("PROTOCOL_ERROR", "RST_STREAM of stream 3, which this client has not opened"), "GOAWAY PROTOCOL_ERROR"},
		{"WINDOW_UPDATE of an unopened stream", func(p *framePeer) { p.acceptStream(); _ = p.WriteWindowUpdate(3, 1) },
			"open " + violation("PROTOCOL_ERROR", "WINDOW_UPDATE of stream 3, which this client has not opened"), "GOAWAY PROTOCOL_ERROR"},
		{"WINDOW_UPDATE by 0", func(p *framePeer) { p.acceptStream(); _ = p.WriteWindowUpdate(0, 0) },
			"open " + violation("PROTOCOL_ERROR", "WINDOW_UPDATE: connection error: PROTOCOL_ERROR"), "GOAWAY PROTOCOL_ERROR"},
		{"WINDOW_UPDATE beyond the maximum", func(p *framePeer) { p.acceptStream(); _ = p.WriteWindowUpdate(0, 1<<31-1) },
			"open " + violation("FLOW_CONTROL_ERROR", "WINDOW_UPDATE exceeds the maximum window of the connection"), "GOAWAY FLOW_CONTROL_ERROR"},
		{"WINDOW_UPDATE of a stream by 0", func(p *framePeer) { id := p.request(); _ = p.WriteWindowUpdate(id, 0) },
			"error: read the response header: the server violated HTTP/2 (PROTOCOL_ERROR): WINDOW_UPDATE: stream error: stream ID 1; PROTOCOL_ERROR", "RST_STREAM 1 PROTOCOL_ERROR, GOAWAY NO_ERROR"},
		{"WINDOW_UPDATE of a stream beyond the maximum", func(p *framePeer) { id := p.request(); _ = p.WriteWindowUpdate(id, 1<<31-1) },
			"error: read the response header: the server violated HTTP/2 (FLOW_CONTROL_ERROR): WINDOW_UPDATE exceeds the maximum window of the stream", "RST_STREAM 1 FLOW_CONTROL_ERROR, GOAWAY NO_ERROR"},
		{"PUSH_PROMISE", func(p *framePeer) {
			id := p.acceptStream()
			_ = p.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2, BlockFragment: p.encode(":method", "GET"), EndHeaders: true})
		}, "open " + violation("PROTOCOL_ERROR", "PUSH_PROMISE, which this client does not accept"), "GOAWAY PROTOCOL_ERROR"},
		{"a frame over the limit", func(p *framePeer) { _ = p.WriteData(p.acceptStream(), false, make([]byte, 16385)) },
			"open " + violation("FRAME_SIZE_ERROR", "DATA of 16385 bytes exceeds the limit of 16384"), "GOAWAY FRAME_SIZE_ERROR"},
		{"SETTINGS of a wrong length", func(p *framePeer) { p.acceptStream(); _ = p.WriteRawFrame(http2.FrameSettings, 0, 0, []byte{1}) },
			"open " + violation("FRAME_SIZE_ERROR", "SETTINGS: connection error: FRAME_SIZE_ERROR"), "GOAWAY FRAME_SIZE_ERROR"},
		{"SETTINGS with an invalid value", func(p *framePeer) {
			p.acceptStream()
			_ = p.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1})
		}, "open " + violation("PROTOCOL_ERROR", "SETTINGS: invalid value [MAX_FRAME_SIZE = 1]"), "GOAWAY PROTOCOL_ERROR"},
		{"SETTINGS with a window that is too large", func(p *framePeer) {
			p.request()
			_ = p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})
		}, "error: read the response header: the server violated HTTP/2 (FLOW_CONTROL_ERROR): SETTINGS: connection error: FLOW_CONTROL_ERROR", "GOAWAY FLOW_CONTROL_ERROR"},
		{"unknown frames", func(p *framePeer) {
			id := p.acceptStream()
			_ = p.WriteRawFrame(0x77, 0xff, id, []byte("x"))
			_ = p.WritePriority(id, http2.PriorityParam{StreamDep: 0})
			_ = p.WriteRawFrame(0x78, 0, 0, nil)
			_ = p.WriteData(id, true, []byte(twoEvents))
		}, "open a b " + ended, "GOAWAY NO_ERROR"},
		{"PING", func(p *framePeer) {
			id := p.acceptStream()
			_ = p.WritePing(false, [8]byte([]byte("12345678")))
			_ = p.WritePing(true, [8]byte([]byte("abcdefgh"))) // acknowledges no PING
			_ = p.WriteData(id, true, []byte(twoEvents))
		}, "open a b " + ended, "PING true 12345678, GOAWAY NO_ERROR"},
		{"RST_STREAM", func(p *framePeer) {
			id := p.acceptStream()
			p.data(id, twoEvents)
			_ = p.WriteRSTStream(id, http2.ErrCodeInternal)
		}, "open a b reset: read the stream: RST_STREAM INTERNAL_ERROR: reset by the server", "GOAWAY NO_ERROR"},
		{"RST_STREAM instead of a header", func(p *framePeer) { _ = p.WriteRSTStream(p.request(), http2.ErrCodeEnhanceYourCalm) },
			"reset: read the response header: RST_STREAM ENHANCE_YOUR_CALM: reset by the server", "GOAWAY NO_ERROR"},
		{"GOAWAY and END_STREAM", func(p *framePeer) {
			id := p.acceptStream()
			_ = p.WriteGoAway(id, http2.ErrCodeNo, nil)
			_ = p.WriteData(id, true, []byte(twoEvents))
		}, "open a b " + ended, "GOAWAY NO_ERROR"},
		{"GOAWAY and the end of the connection", func(p *framePeer) {
			id := p.acceptStream()
			p.data(id, twoEvents)
			_ = p.WriteGoAway(id, http2.ErrCodeNo, nil)
			_ = p.tcp.CloseWrite()
		}, "open a b truncated: read the stream: GOAWAY NO_ERROR: the connection ended before the stream did: unexpected EOF", "-"},
		{"GOAWAY with a reason", func(p *framePeer) {
			id := p.acceptStream()
			p.data(id, twoEvents)
			_ = p.WriteGoAway(id, http2.ErrCodeEnhanceYourCalm, []byte("too much"))
			_ = p.tcp.CloseWrite()
		}, `open a b reset: read the stream: GOAWAY ENHANCE_YOUR_CALM "too much": reset by the server`, "-"},
		{"the end of the connection", func(p *framePeer) { p.data(p.acceptStream(), twoEvents); _ = p.tcp.CloseWrite() },
			"open a b truncated: read the stream: the connection ended before the stream did: unexpected EOF", "-"},
		{"the end of the connection inside a frame", func(p *framePeer) {
			id := p.acceptStream()
			_, _ = p.conn.Write(append([]byte{0, 0, 20, 0, 0, 0, 0, 0, byte(id)}, "data: a\n\ndat"...))
			_ = p.tcp.CloseWrite()
		}, "open a truncated: read the stream: the connection ended before the stream did: unexpected EOF", "-"},
		{"a reset of the connection", func(p *framePeer) {
			p.data(p.acceptStream(), twoEvents)
			p.settle()
			_ = p.tcp.SetLinger(0)
			_ = p.tcp.Close()
		},
			"open a b reset: read the stream: read: connection reset by peer", "-"},
		{"a content-length", func(p *framePeer) {
			id := p.request()
			p.headers(id, false, ":status", "200", "content-type", "text/event-stream", "content-length", "100")
			_ = p.WriteData(id, true, []byte(twoEvents))
		}, "open a b truncated: read the stream: the response ended before it reached its content-length: unexpected EOF", "GOAWAY NO_ERROR"},
		{"more bytes than the content-length", func(p *framePeer) {
			id := p.request()
			p.headers(id, false, ":status", "200", "content-type", "text/event-stream", "content-length", "9")
			_ = p.WriteData(id, false, []byte(twoEvents[:9]))
			_ = p.WriteData(id, true, []byte(twoEvents[9:]))
		}, "open a error: read the stream: the server violated HTTP/2 (PROTOCOL_ERROR): the response is longer than its content-length", "-"}, // the client cancels the stream unless END_STREAM has arrived
	} {
		t.Run(tt.name, func(t *testing.T) {
			runTransports(t, mixedTransports, func(t *testing.T, w transport) {
				received := make(chan string, 1)
				v := w.vu(t)
				v.set("url", w.url(serveFrames(t, func(p *framePeer) {
					tt.server(p)
					received <- p.readAll()
				})))
				require.Equal(t, tt.want, socketNames.ReplaceAllString(v.log(oneStream), ""))
				if tt.received != "-" {
					require.Equal(t, tt.received, <-received)
				}
			})
		})
	}
}

// settle waits until the client has read all frames that were sent so far.
func (p *framePeer) settle() {
	_ = p.WritePing(false, [8]byte{})
	_, _ = p.next(http2.FramePing)
}
