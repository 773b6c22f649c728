package nginx

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/sockets"
)

// silentStream returns a handler that sends two noops with a silence between them.
func silentStream(silence time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(w)
		for n := range 2 {
			if n > 0 {
				time.Sleep(silence)
			}
			_, _ = io.WriteString(w, "data: 0\n\n")
			_ = control.Flush()
		}
	}
}

// serveHTTP10 serves the stream of silentStream with HTTP/1.0. The response ends when the connection is closed.
func serveHTTP10(t *testing.T, socket string, silence time.Duration) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	sockets.ServeOn(t, l, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 0\n\n")
		time.Sleep(silence)
		_, _ = io.WriteString(conn, "data: 0\n\n")
	})
}

var errWrongNoops = errors.New("the first noop was late, or a noop was missing or changed")

// readNoops reads the two noops of a stream. It returns errWrongNoops if the first is late, or if one is missing or
// changed.
func readNoops(address string, silence time.Duration) error {
	client := &http.Client{Timeout: silence + 10*time.Second}
	started := time.Now()
	resp, err := client.Get("http://" + address + "/event/connect?id=a")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for n := range 2 {
		line, err := lines.ReadString('\n')
		if err != nil {
			return errors.Join(errWrongNoops, err)
		}
		if n == 0 && time.Since(started) > silence/2 || line != "data: 0\n" {
			return errWrongNoops
		}
		_, _ = lines.ReadString('\n')
	}
	return nil
}

func TestSilentStreamStaysOpen(t *testing.T) {
	t.Parallel()
	// By default the idle timeout is only slightly longer than the silence. CALIBRATE uses the idle timeout of the
	// stack, one hour, with a silence of 100 s.
	silence, idleTimeout := 2500*time.Millisecond, 4*time.Second
	if os.Getenv("CALIBRATE") != "" {
		silence, idleTimeout = 100*time.Second, time.Hour
	}
	c := newConfig(t)
	c.IdleTimeout = idleTimeout
	serve(t, "unix", c.Sockets[0], silentStream(silence))
	start(t, c)
	require.NoError(t, readNoops(c.Listen, silence))
}

func TestStreamIsClosedAfterTheIdleTimeout(t *testing.T) {
	t.Parallel()
	c := newConfig(t)
	c.IdleTimeout = time.Second
	serve(t, "unix", c.Sockets[0], silentStream(3*time.Second))
	start(t, c)
	require.ErrorIs(t, readNoops(c.Listen, 3*time.Second), errWrongNoops)
}

// nginx with proxy_buffering forwards an HTTP/1.0 response only at its end. It would forward each chunk of an HTTP/1.1
// response at once, so the test uses HTTP/1.0.
func TestReadNoopsDetectsBuffering(t *testing.T) {
	t.Parallel()
	silence := 2500 * time.Millisecond
	for name, edits := range map[string][]string{
		"as rendered": nil,
		"buffered":    {"proxy_buffering off;", "proxy_buffering on;", "proxy_http_version 1.1;", "proxy_http_version 1.0;"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConfig(t)
			c.IdleTimeout = 10 * time.Second
			serveHTTP10(t, c.Sockets[0], silence)
			start(t, c, edits...)
			err := readNoops(c.Listen, silence)
			if edits == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, errWrongNoops)
			}
		})
	}
}
