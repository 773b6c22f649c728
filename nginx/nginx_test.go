package nginx

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/reverse"
)

func config(dir string) Config {
	return Config{
		Dir: dir, ErrorLog: filepath.Join(dir, "error.log"), Listen: "127.0.0.1:18080", Sockets: []string{filepath.Join(dir, "backend.sock")},
		Workers: 2, Connections: 1200, NoopInterval: 15 * time.Second,
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	require.NoError(t, Render(&b, config("/d")))
	for _, want := range []string{
		"\ndaemon off;\n", "\npid \"/d/nginx.pid\";\n", "\nerror_log \"/d/error.log\" warn;\n", "\nworker_processes 2;\n",
		"\n    worker_connections 2912;\n", "\nworker_rlimit_nofile 3424;\n", "listen 127.0.0.1:18080 backlog=8192;",
		`server "unix:/d/backend.sock";`, "proxy_http_version 1.1;", `proxy_set_header Connection "";`, "proxy_buffering off;",
		"proxy_read_timeout 60s;", "proxy_buffer_size 1k;", "request_pool_size 1k;", "client_header_buffer_size 512;",
	} {
		require.Contains(t, b.String(), want)
	}
	require.NotContains(t, b.String(), "user root")
	require.NotContains(t, b.String(), "<no value>")
	root := config("/d")
	root.Root = true
	b.Reset()
	require.NoError(t, Render(&b, root))
	require.Contains(t, b.String(), "\nuser root;")
}

func TestStreamMayBeSilentForFourIntervals(t *testing.T) {
	t.Parallel()
	for interval, seconds := range map[time.Duration]int{100 * time.Millisecond: 60, 15 * time.Second: 60, 16 * time.Second: 64, 5 * time.Minute: 1200} {
		require.Equal(t, seconds, Config{NoopInterval: interval}.ReadTimeout())
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestRenderErrorsNameTheCause(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, Render(fullDisk{}, config("/d")), "render the configuration of nginx: disk full")
}

func TestNginxAcceptsTheConfiguration(t *testing.T) {
	t.Parallel()
	binary := reverse.Program(t)
	for _, name := range []string{"plain", "two words", "semi;colon", "{brace}", `quo"te'`, `back\new`, "new\nline", "#hash", "$host"} {
		dir := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.Mkdir(dir, 0o700))
		c := config(dir)
		c.Root = name != "plain"
		path := filepath.Join(c.Dir, "nginx.conf")
		f, err := os.Create(path)
		require.NoError(t, err)
		require.NoError(t, Render(f, c))
		require.NoError(t, f.Close())
		out, err := exec.CommandContext(t.Context(), binary, "-t", "-q", "-e", c.ErrorLog, "-c", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), "[emerg]")
	}
}

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
