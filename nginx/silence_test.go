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
)

// silentStream sends one noop, is silent, and sends another.
func silentStream(silence time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		flush := http.NewResponseController(w)
		for n := range 2 {
			if n > 0 {
				time.Sleep(silence)
			}
			_, _ = io.WriteString(w, "data: 0\n\n")
			_ = flush.Flush()
		}
	}
}

// oldStream is the same from a server that speaks HTTP/1.0, as its connection ends.
func oldStream(t *testing.T, socket string, silence time.Duration) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 0\n\n")
				time.Sleep(silence)
				_, _ = io.WriteString(conn, "data: 0\n\n")
			}()
		}
	}()
}

var errNotWhileHeld = errors.New("a noop did not come until the stream was over, or cut")

// bothNoops reads the noops of a stream, each when it is due.
func bothNoops(address string, silence time.Duration) error {
	client := &http.Client{Timeout: silence + 10*time.Second}
	begun := time.Now()
	resp, err := client.Get("http://" + address + "/event/connect?id=a")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for n := range 2 {
		line, err := lines.ReadString('\n')
		if err != nil {
			return errors.Join(errNotWhileHeld, err)
		}
		if n == 0 && time.Since(begun) > silence/2 || line != "data: 0\n" {
			return errNotWhileHeld
		}
		_, _ = lines.ReadString('\n')
	}
	return nil
}

func TestSilenceDoesNotCutAStream(t *testing.T) {
	t.Parallel()
	// The ratio of the stack's hour to 100 s is 36; here nginx is given the next second.
	silence, allowed := 2500*time.Millisecond, 4*time.Second
	if os.Getenv("CALIBRATE") != "" {
		silence, allowed = 100*time.Second, time.Hour
	}
	c := newConfig(t)
	c.Silence = allowed
	serve(t, "unix", c.Sockets[0], silentStream(silence))
	start(t, c)
	require.NoError(t, bothNoops(c.Listen, silence))
}

func TestSilenceOverTheTimeoutCutsAStream(t *testing.T) {
	t.Parallel()
	c := newConfig(t)
	c.Silence = time.Second
	serve(t, "unix", c.Sockets[0], silentStream(3*time.Second))
	start(t, c)
	require.ErrorIs(t, bothNoops(c.Listen, 3*time.Second), errNotWhileHeld)
}

// A test that cannot fail proves nothing: with buffering and HTTP/1.0 to the backend noops do
// not come while the stream is held. With HTTP/1.1 and chunks nginx passes them even buffered.
func TestBufferingIsNoticed(t *testing.T) {
	t.Parallel()
	silence := 2500 * time.Millisecond
	for name, edits := range map[string][]string{
		"as rendered": nil,
		"buffered":    {"proxy_buffering off;", "proxy_buffering on;", "proxy_http_version 1.1;", "proxy_http_version 1.0;"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConfig(t)
			c.Silence = 10 * time.Second
			oldStream(t, c.Sockets[0], silence)
			start(t, c, edits...)
			err := bothNoops(c.Listen, silence)
			if edits == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, errNotWhileHeld)
			}
		})
	}
}
