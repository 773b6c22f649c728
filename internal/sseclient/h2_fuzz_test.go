package sseclient

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

type discardConn struct{ net.Conn }

func (discardConn) Write(p []byte) (int, error)      { return len(p), nil }
func (discardConn) Close() error                     { return nil }
func (discardConn) SetReadDeadline(time.Time) error  { return nil }
func (discardConn) SetWriteDeadline(time.Time) error { return nil }

// A collector is a reader that stores the data and the final error of its stream.
type collector struct {
	st   *h2Stream
	data strings.Builder
	end  error
}

func (r *collector) turn(buf []byte, _ *eventstream.Block) {
	for {
		n, err := r.st.Read(buf)
		r.data.Write(buf[:n])
		if err == errNotReady {
			return
		}
		if err != nil {
			r.end = err
			r.st.hangUp()
			return
		}
	}
}

// readSplit passes the output of a server to a connection with two streams, in pieces, and then ends the connection. It
// returns the data and the final error of each stream.
func readSplit(t *testing.T, output, pieces []byte) (all []string) {
	c := newH2Conn(&Response{conn: discardConn{}}, new(h2Pool), 0)
	var readers []*collector
	for range 2 {
		st := &h2Stream{conn: c, id: c.nextID}
		st.pipe = newH2Pipe(st)
		c.streams = append(c.streams, st)
		c.nextID += 2
		readers = append(readers, &collector{st: st})
		st.reader = readers[len(readers)-1]
	}
	buf := make([]byte, pollBufferForTests)
	var b eventstream.Block
	var err error
	for i := 0; len(output) > 0 && err == nil; i++ {
		n := len(output)
		if len(pieces) > 0 {
			n = min(n, 1+int(pieces[i%len(pieces)]))
		}
		part := bytes.Clone(output[:n])
		err, output = c.cursor.read(c, part, buf, &b), output[n:]
		clear(part) // as if the connection had reused its buffer
		c.turnNudges(buf, &b)
		require.LessOrEqual(t, c.cursor.frames.Len(), h2MaxBlock+h2MaxFrame)
		for _, r := range readers {
			if r.st.pipe != nil {
				require.LessOrEqual(t, len(r.st.pipe.data), h2Window)
			}
		}
	}
	if err == nil {
		err = errTruncatedStream
	}
	if !c.isClosed() {
		c.fail(err, buf, &b)
	}
	for _, r := range readers {
		require.Error(t, r.end)
		all = append(all, r.data.String(), r.end.Error())
	}
	require.Empty(t, c.streams)
	return all
}

const pollBufferForTests = 32 << 10

// FuzzH2Frames checks that each stream ends for any output of a server, and that memory is limited. It also checks that
// the sizes of the pieces have no effect.
func FuzzH2Frames(f *testing.F) {
	var output bytes.Buffer
	server := http2.NewFramer(&output, nil)
	server.AllowIllegalWrites = true
	var block bytes.Buffer
	fields := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":status", "200"}, {"content-type", "text/event-stream"}} {
		_ = fields.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	head := bytes.Clone(block.Bytes())
	seed := func(frames ...func() error) {
		output.Reset()
		_ = server.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})
		_ = server.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head[:1]})
		_ = server.WriteContinuation(1, true, head[1:])
		for _, s := range frames {
			_ = s()
		}
		f.Add(bytes.Clone(output.Bytes()), []byte{0})
		f.Add(bytes.Clone(output.Bytes()), []byte{8, 0, 20})
	}
	seed(func() error { return server.WriteDataPadded(1, true, []byte(twoEvents), make([]byte, 5)) })
	seed(func() error { return server.WriteRSTStream(1, http2.ErrCodeInternal) },
		func() error { return server.WriteRSTStream(3, http2.ErrCodeRefusedStream) })
	seed(func() error { return server.WriteGoAway(1, http2.ErrCodeNo, []byte("bye")) },
		func() error { return server.WriteData(1, true, []byte(twoEvents)) })
	seed(func() error { return server.WritePing(false, [8]byte{}) }, func() error { return server.WriteWindowUpdate(1, 5) },
		func() error { return server.WriteData(3, false, nil) }, func() error { return server.WriteRawFrame(99, 0, 3, head) })
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), []byte{})
	f.Fuzz(func(t *testing.T, output, pieces []byte) {
		require.Equal(t, readSplit(t, output, nil), readSplit(t, output, pieces))
	})
}
