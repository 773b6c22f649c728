package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A recordingServer records its requests.
type recordingServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // HOST/PATH
	bodies   map[string]string
}

func record(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body string)) *recordingServer {
	rec := &recordingServer{bodies: map[string]string{}}
	rec.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rec.mu.Lock()
		rec.requests = append(rec.requests, r.Host+r.URL.Path)
		rec.bodies[r.Method+" "+filepath.Base(r.URL.Path)] = string(body)
		rec.mu.Unlock()
		answer(w, r, string(body))
	}))
	t.Cleanup(rec.Close)
	return rec
}

func (r *recordingServer) targets() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.requests...)
}

func (r *recordingServer) lastCreated(resource string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies["POST "+resource]
}

// startStack starts a server that replaces the stack. The server responds to each request with the status ready.
func startStack(t *testing.T) *recordingServer {
	return record(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status":"ready","noop_interval_s":15}`)
	})
}

// startCluster starts an API server whose user may create TestRuns, but no secrets. A run therefore fails when it
// creates the secret of its runners.
func startCluster(t *testing.T) *recordingServer {
	return record(t, func(w http.ResponseWriter, r *http.Request, body string) {
		w.Header().Set("Content-Type", "application/json")
		switch runs := strings.Contains(r.URL.Path, "/testruns"); {
		case runs && r.Method == http.MethodGet:
			fmt.Fprint(w, `{"apiVersion":"k6.io/v1alpha1","kind":"TestRunList","metadata":{},"items":[]}`)
		case runs && r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, body)
		case runs && r.Method == http.MethodDelete:
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Success"}`)
		case r.Method == http.MethodGet: // for pods
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"PodList","metadata":{},"items":[]}`)
		default:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403}`)
		}
	})
}

// kubeconfig is the file that k3s writes on its host.
const kubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:6443"}}],` +
	`"users":[{"name":"c","user":{}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}]}`

// soakProgram builds soak like make, next to the folder with the overlays, and returns the path of the program.
func soakProgram(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(root, "infra"), filepath.Join(dir, "infra")))
	program := filepath.Join(dir, "bin", "soak")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "./cmd/soak")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}
