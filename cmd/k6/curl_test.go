package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

// The script curl runs with the sh and nc of BusyBox, as in the image of the Dockerfile.
func TestCurlReplacementStartsARunner(t *testing.T) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		untested.SkipMissing(t, "busybox is not installed: apt-get install busybox")
	}
	bin := t.TempDir()
	for _, name := range []string{"sh", "nc", "sleep"} {
		require.NoError(t, os.Symlink(busybox, filepath.Join(bin, name)))
	}
	const body = `{"data":{"attributes":{"paused": false},"id": "default","type":"status"}}`
	var status, requests atomic.Int32
	status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		text, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.Equal(t, []string{http.MethodPatch, "/v1/status", "application/json", body}, []string{r.Method, r.URL.Path, r.Header.Get("Content-Type"), string(text)})
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, `{"data":{"attributes":{"running":true}}}`)
	}))
	defer server.Close()
	start := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "sh"), "curl", "--retry", "3", "-X", "PATCH", "-H", "Content-Type: application/json",
			server.URL+"/v1/status", "-d", body, "-s", "-w", "\n%{http_code}")
		cmd.Env = []string{"PATH=" + bin}
		output, err := cmd.CombinedOutput()
		return string(output), err
	}
	output, err := start()
	require.NoError(t, err, output)
	assert.Contains(t, output, `"running":true`)
	assert.EqualValues(t, 1, requests.Load())

	status.Store(http.StatusInternalServerError)
	output, err = start()
	require.Error(t, err)
	assert.Contains(t, output, "500 Internal Server Error")
	assert.EqualValues(t, 1+4, requests.Load(), "a failed request must be sent three more times")
}
