package compose

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/reverse"
)

// TestDockerIsReadOnly checks that the proxy forwards only the read requests of cAdvisor to Docker and containerd.
func TestDockerIsReadOnly(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/tmp", "reader") // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	docker := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "docker received ", r.Method, " ", r.URL)
	}))
	docker.Listener, err = net.Listen("unix", filepath.Join(dir, "docker.sock"))
	require.NoError(t, err)
	docker.Start()
	t.Cleanup(docker.Close)

	containerd := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // like gRPC; Go resets a stream whose request was not read to its end
		fmt.Fprint(w, "containerd received ", r.Method, " ", r.URL)
	}))
	containerd.Listener, err = net.Listen("unix", filepath.Join(dir, "containerd.sock"))
	require.NoError(t, err)
	containerd.Config.Protocols = cleartextHTTP2()
	containerd.Start()
	t.Cleanup(containerd.Close)

	text := read(t, "docker-reader.conf")
	// The order matters, because the second path is a prefix of the first.
	for _, path := range [][2]string{{"/host/run/containerd/", dir + "/"}, {"/host/run/", dir + "/"}, {"/run/docker-reader/", dir + "/reader-"}, {" /tmp/", " " + dir + "/"}} {
		require.Contains(t, text, path[0])
		text = strings.ReplaceAll(text, path[0], path[1])
	}
	if os.Geteuid() != 0 {
		text = strings.Replace(text, "user root;", "", 1)
	}
	reverse.Start(t, dir, text, "unix", filepath.Join(dir, "reader-docker.sock"))

	clientOf := func(socket string, protocols *http.Protocols) *http.Client {
		return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{Protocols: protocols, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, socket))
		}}}
	}
	client := clientOf("reader-docker.sock", nil)
	request := func(method, path string) (int, string) {
		var resp *http.Response
		require.Eventually(t, func() bool {
			r, err := http.NewRequest(method, "http://docker"+path, nil)
			require.NoError(t, err)
			resp, err = client.Do(r)
			return err == nil
		}, time.Minute, 10*time.Millisecond, "the proxy must respond to %s %s", method, path)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	id := strings.Repeat("0a", 32)
	for _, path := range []string{"/_ping", "/version", "/v1.41/info", "/v1.41/containers/" + id + "/json"} {
		status, body := request(http.MethodGet, path)
		require.Equal(t, http.StatusOK, status, path)
		require.Equal(t, "docker received GET "+path, body)
	}
	status, _ := request(http.MethodHead, "/_ping")
	require.Equal(t, http.StatusOK, status)
	for _, path := range []string{
		"/v1.41/containers/" + id + "/archive?path=/", "/containers/json", "/v1.41/containers/" + id + "/json/../exec", "/images/json", "/events",
		"/v1.41/containers/" + id + "/logs", "/secrets", "/",
	} {
		status, body := request(http.MethodGet, path)
		require.Equal(t, http.StatusForbidden, status, "%s: %s", path, body)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		for _, path := range []string{"/v1.41/containers/create", "/v1.41/containers/" + id + "/exec", "/v1.41/containers/" + id + "/json"} {
			status, body := request(method, path)
			require.Equal(t, http.StatusForbidden, status, "%s %s: %s", method, path, body)
		}
	}

	client = clientOf("reader-containerd.sock", cleartextHTTP2())
	const get = "/containerd.services.containers.v1.Containers/Get"
	status, body := request(http.MethodPost, get)
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, "containerd received POST "+get, body)
	for _, path := range []string{"/containerd.services.containers.v1.Containers/Create", "/containerd.services.tasks.v1.Tasks/Exec", "/"} {
		status, body := request(http.MethodPost, path)
		require.Equal(t, http.StatusForbidden, status, "%s: %s", path, body)
	}
}

// cleartextHTTP2 returns the protocol of gRPC on a socket: HTTP/2 without TLS.
func cleartextHTTP2() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}
