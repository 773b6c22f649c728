package nginx

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/reverse"
)

// shortDir returns a folder with a name that is short enough for sockets in it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nginx-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// serve serves requests on a socket or an address until the test ends.
func serve(t *testing.T, network, address string, h http.HandlerFunc) {
	t.Helper()
	l, err := net.Listen(network, address)
	require.NoError(t, err)
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
}

// start runs nginx with a configuration, edited by pairs of old and new text, until the test ends.
func start(t *testing.T, c Config, edits ...string) {
	t.Helper()
	var b strings.Builder
	require.NoError(t, Render(&b, c))
	text := b.String()
	// The user of the image does not exist on this host.
	for i, edits := 0, append([]string{"user nginx;", "user root;"}, edits...); i < len(edits); i += 2 {
		if i > 0 {
			require.Contains(t, text, edits[i])
		}
		text = strings.ReplaceAll(text, edits[i], edits[i+1])
	}
	reverse.Start(t, c.Dir, text, "tcp", c.Listen)
}

// addSockets adds the sockets of all backends but the first. backends is the number of all.
func (c *Config) addSockets(backends int) {
	for n := 2; n <= backends; n++ {
		c.Sockets = append(c.Sockets, filepath.Join(c.Dir, fmt.Sprintf("%d.sock", n)))
	}
}

func newConfig(t *testing.T) Config {
	t.Helper()
	dir := shortDir(t)
	return Config{
		Dir: dir, ErrorLog: filepath.Join(dir, "error.log"), Listen: address.Reserve(t), Sockets: []string{filepath.Join(dir, "1.sock")},
		Root: os.Geteuid() == 0, Workers: 1, Connections: 50, NoopInterval: time.Second,
	}
}
