//go:build e2e

package e2e

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/reverse"
	"github.com/sse-soak/sse-soak/test/services"
)

// `soak probe --idle` measures the proxy_read_timeout of nginx in front of nchan.
func TestIdleProbeFindsProxyTimeout(t *testing.T) {
	t.Parallel()
	r := startService(t, "nchan", services.Options{})
	front := "http://" + idleProxy(t, r.URL, 8*time.Second)
	flags := r.Flags()
	for i := range flags {
		flags[i] = strings.ReplaceAll(flags[i], r.URL, front)
	}
	probe := exec.Command(filepath.Join(root, "bin", "soak"), append([]string{"probe", "--idle", "--seconds", "40"}, flags...)...)
	probe.Env = append(os.Environ(), r.Env...)
	output, err := probe.CombinedOutput()
	t.Log(string(output))
	require.NoError(t, err)
	require.Regexp(t, `(after +([789]|10)\.\d s  closed: the connection was closed in the middle of the response\n){2}`, string(output))
	require.Contains(t, string(output), "Send something on each stream")
}

// idleProxy returns the address of an nginx that closes connections after an idle time.
func idleProxy(t *testing.T, to string, after time.Duration) string {
	return proxy(t, to, fmt.Sprintf("proxy_buffering off; proxy_read_timeout %ds;", int(after.Seconds())))
}

// proxy returns the address of an nginx that forwards all requests. directives are added to its location.
func proxy(t *testing.T, to, directives string) string { return proxyWith(t, to, "", directives) }

// proxyWith is like proxy, with parameters of the directive listen, such as ssl.
func proxyWith(t *testing.T, to, parameters, directives string) string {
	t.Helper()
	u, err := url.Parse(to)
	require.NoError(t, err)
	dir := t.TempDir()
	listen := address.Reserve(t)
	reverse.Start(t, dir, fmt.Sprintf(`daemon off; pid %[1]s/pid; error_log stderr warn; worker_processes 1;
events { worker_connections 512; }
http {
  access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  server { listen %[2]s%[5]s; location / { proxy_pass http://%[3]s; proxy_http_version 1.1; %[4]s } }
}
`, dir, listen, u.Host, directives, parameters), "tcp", listen)
	return listen
}
