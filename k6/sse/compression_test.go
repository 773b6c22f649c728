package sse

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/packing"
)

func compressedHead(coding string) string {
	return strings.Replace(streamHead, "\r\n\r\n", "\r\nContent-Encoding: "+coding+"\r\n\r\n", 1)
}

func TestEndsOfCompressedStreams(t *testing.T) {
	bomb := packing.Compress("gzip", "data: 0\n\ndata: "+strings.Repeat("x", 4<<20))
	members := packing.Compress("gzip", "data: 0\n\n") + packing.Compress("gzip", "data: 1\n\n")
	complete := packing.Compress("gzip", twoEvents)
	const chunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []struct {
		name    string
		options string
		handle  func(p *peer)
		want    string
	}{
		{"an end mark", "", respond(compressedHead("gzip") + packing.Compress("gzip", twoEvents)), "a b server: the server ended the stream"},
		{"in pieces", "", func(p *peer) { p.sendInPieces(1, func() { p.send(compressedHead("gzip") + members) }) }, "0 1 server: the server ended the stream"},
		{"in chunks", "", respond(chunkedHead + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(complete), complete)), "a b server: the server ended the stream"},
		{"no last chunk", "", respond(chunkedHead + fmt.Sprintf("%x\r\n%s\r\n", len(complete), complete)), "a b truncated: read the stream: the connection ended before the last chunk: unexpected EOF"},
		{"no end mark", "", respond(compressedHead("gzip") + packing.CompressUnfinished("gzip", twoEvents)), "a b truncated: read the stream: the compressed stream ended without its end mark: unexpected EOF"},
		{"an end mark inside an event", "", respond(compressedHead("gzip") + packing.Compress("gzip", twoEvents+"data: c\n")), "a b truncated: the stream ended inside an event: unexpected EOF"},
		{"a reset", "", func(p *peer) {
			p.send(compressedHead("gzip") + packing.CompressUnfinished("gzip", twoEvents))
			time.Sleep(20 * time.Millisecond)
			p.reset()
		}, "a b reset: read the stream: read: connection reset by peer"},
		{"a bomb", "maxEventSize: 1000,", respond(compressedHead("gzip") + bomb), "0 too_long: read the stream: event exceeds the size limit of 1000 bytes (one line)"},
		{"silence", "idleTimeout: 60,", func(p *peer) {
			p.send(compressedHead("gzip") + packing.CompressUnfinished("gzip", twoEvents))
			p.hold()
		}, "a b idle: no byte from the server within the idle timeout"},
		{"bytes without an event", "idleTimeout: 600,", func(p *peer) {
			p.send(compressedHead("gzip"))
			z := gzip.NewWriter(p)
			for range 8 {
				_ = z.Flush()
				time.Sleep(100 * time.Millisecond)
			}
			_, _ = io.WriteString(z, twoEvents)
			_ = z.Close()
		}, "a b server: the server ended the stream"},
		{"204", "", respond("HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n"), "no_content: the server responded with 204 No Content, so the client must not reconnect"},
		{"a compressed error", "", respond("HTTP/1.1 503 No\r\nContent-Encoding: gzip\r\n\r\n" + packing.Compress("gzip", `{"title":"full"}`)), "status: unexpected status 503 Service Unavailable: full"},
		{"a redirect", "", func(p *peer) {
			if p.n == 0 {
				p.send("HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Encoding: gzip\r\n\r\n")
				return
			}
			p.send(compressedHead("gzip") + packing.Compress("gzip", "data: "+p.req.URL.Path+" "+p.req.Header.Get("Accept-Encoding")+"\n\n"))
		}, "/there gzip, deflate, br, zstd server: the server ended the stream"},
		{"a coding that was not requested", "acceptEncoding: 'gzip',", respond(compressedHead("br") + packing.Compress("br", twoEvents)), `content_type: the response has the content-encoding "br", which was not requested; set acceptEncoding, or turn off compression in the service or its proxy`},
		{"an unknown coding", "headers: { 'accept-encoding': '*' },", respond(compressedHead("compress") + complete), `content_type: unsupported content-encoding "compress"; use one of gzip, deflate, br, zstd`},
		{"a header of the script", "headers: { 'accept-encoding': 'br;q=1' },", func(p *peer) {
			p.send(compressedHead("br") + packing.Compress("br", "data: "+p.req.Header.Get("Accept-Encoding")+"\n\n"))
		}, "br;q=1 server: the server ended the stream"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runTransports(t, mixedTransports, func(t *testing.T, w transport) {
				v := w.serveVU(t, tt.handle)
				got := v.readStream(`acceptEncoding: 'browser', ` + tt.options)
				require.Equal(t, tt.want, socketNames.ReplaceAllString(got, ""))
			})
		})
	}
}

// Each stream has a new decoder. TestMain detects decoders that do not end with their stream.
func TestCompressedStreamsReconnect(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		v := w.serveVU(t, func(p *peer) {
			p.send(compressedHead("gzip") + packing.CompressUnfinished("gzip", fmt.Sprintf("retry: 1\n\nid: %d\ndata: %d after %s\n\n", p.n, p.n, p.req.Header.Get("Last-Event-ID"))))
			if p.n > 0 {
				p.hold()
			}
		})
		require.Equal(t, "0 after  1 after 0 2 after 1", v.log(`
			const s = new EventSource(url, { acceptEncoding: 'gzip', ledger });
			s.onmessage = (e) => {
				log.push(e.data);
				if (e.data.startsWith('1')) s.drop();
				if (e.data.startsWith('2')) s.close();
			};
		`))
		require.Equal(t, 3, strings.Count(v.rec.String(), "opened:gzip"), "the callback must report the coding")
	})
}

func TestOpenReadsCompressedStreams(t *testing.T) {
	t.Parallel()
	v := serveVU(t, func(p *peer) {
		if p.req.Method == http.MethodHead {
			p.send(compressedHead("gzip"))
			return
		}
		p.send(compressedHead("gzip") + packing.Compress("gzip", "data: "+p.req.Header.Get("Accept-Encoding")+"\n\n"))
	})
	require.Equal(t, "open event:||gzip|", v.log(`sse.open(url, { acceptEncoding: 'gzip' }, `+logging+`)`))
	require.Equal(t, "error:content_type true", v.log(`sse.open(url, { acceptEncoding: 'none' }, `+logging+`)`))
	require.Equal(t, "open", v.log(`sse.open(url, { acceptEncoding: 'gzip', method: 'HEAD' }, `+logging+`)`))
	_, err := v.run(`sse.open(url, { acceptEncoding: 'brotli' }, () => {})`)
	require.ErrorContains(t, err, `invalid sse.open() acceptEncoding: must be none, gzip or browser, got "brotli"`)
}
