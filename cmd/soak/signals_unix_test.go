//go:build unix

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results/archive"
	"github.com/sse-soak/sse-soak/test/untested"
)

func TestClosedTerminalEndsAProbe(t *testing.T) {
	untested.RequireHangups(t)
	var once sync.Once // a second signal would kill the process
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 25 { // within half a second, the probe has read the first event
			_, _ = io.WriteString(w, "data: x\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
		once.Do(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGHUP) })
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	out := filepath.Join(t.TempDir(), "x.js")
	require.Zero(t, execute([]string{"probe", server.URL, "--streams", "1", "--out", out}))
	require.FileExists(t, out)
}

func TestCtrlCIsNoFindingOfADoctor(t *testing.T) {
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) })
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	_, _, err := doctor(t, "--backend-url", server.URL)
	require.EqualError(t, err, "interrupted before the end of the checks")
}

func TestClosedTerminalRemovesTheUnpackedFiles(t *testing.T) {
	untested.RequireHangups(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	file := filepath.Join(t.TempDir(), "x.tar.gz")
	out := &watchedOutput{text: "so nothing is started", onMatch: sync.OnceFunc(func() { require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP)) })}
	require.NoError(t, makeArchive(t.Context(), archive.Source{Folder: runFolder(t)}, file, &bytes.Buffer{}))
	cmd := openCommand()
	cmd.SetArgs([]string{file})
	cmd.SetOut(out)
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	files, err := os.ReadDir(tmp)
	require.NoError(t, err)
	require.Empty(t, files)
}
