//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/forward"
	"github.com/sse-soak/sse-soak/test/untested"
)

// hostAddress returns an address of this machine other than loopback, for which no proxy is used.
func hostAddress(t *testing.T) string {
	t.Helper()
	host, err := address.Host()
	require.NoError(t, err)
	if host == "" {
		untested.Skip(t, "a service behind a proxy that others wrote: this machine has no address but loopback")
	}
	return host
}

// tinyproxy starts tinyproxy, if it is installed, and returns its address and its log.
func tinyproxy(t *testing.T, user, password string) (listen string, log func() string) {
	t.Helper()
	path, err := exec.LookPath("tinyproxy")
	if err != nil {
		untested.Skip(t, "a run through tinyproxy, which is not installed (apt-get install tinyproxy-bin)")
	}
	listen, err = address.Free()
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(listen)
	require.NoError(t, err)
	dir := t.TempDir()
	conf, logFile := filepath.Join(dir, "conf"), filepath.Join(dir, "log")
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, "Port %s\nListen %s\nTimeout 60\nMaxClients 100\nLogFile %q\nLogLevel Connect\nBasicAuth %s %s\n", port, host, logFile, user, password), 0o600))
	cmd := exec.Command(path, "-d", "-c", conf)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	await(t, "tinyproxy must listen", func() bool {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return listen, func() string {
		text, err := os.ReadFile(logFile)
		require.NoError(t, err)
		return string(text)
	}
}

// A run through a third-party proxy passes, and refusals of the proxy are quoted.
func TestRunThroughTinyproxy(t *testing.T) {
	t.Parallel()
	listen, log := tinyproxy(t, "joe", "open-sesame")
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			service, _, _, args := startProxied(t, scheme == "https", forward.Options{})
			l, err := net.Listen("tcp", net.JoinHostPort(hostAddress(t), "0"))
			require.NoError(t, err)
			relay(t, l, service.Listener.Addr().String(), 0)
			base := scheme + "://" + l.Addr().String()
			for i := range args {
				args[i] = strings.Replace(args[i], scheme+"://service.test", base, 1)
			}
			env := func(user string) []string {
				return []string{"http_proxy=" + user + listen, "https_proxy=http://" + user + listen, "no_proxy=", "K6_INSECURE_SKIP_TLS_VERIFY=true"}
			}
			r := begin(t, env("joe:open-sesame@"), args...)
			v := r.verdict()
			require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
			require.Equal(t, 16, v.Connections.Completed)
			method := map[string]string{"http": "DELETE", "https": "CONNECT"}[scheme]
			require.Contains(t, log(), "(file descriptor ") // tinyproxy logs this for each request
			require.Contains(t, log(), method+" ")

			r = begin(t, env(""), args...)
			require.NotZero(t, r.end())
			require.Contains(t, r.out.String(), "the proxy http://"+listen+" refused ")
			require.Contains(t, r.out.String(), "with 407 Proxy Authentication Required")
		})
	}
}
