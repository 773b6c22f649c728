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
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results/archive"
	"github.com/sse-soak/sse-soak/test/untested"
)

func TestClosedTerminalEndsAProbe(t *testing.T) {
	untested.RequireHangups(t)
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: x\n\n")
		_ = http.NewResponseController(w).Flush()
		if requests.Add(1) == 2 { // the probe has read the headers of the first stream
			_ = syscall.Kill(os.Getpid(), syscall.SIGHUP)
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	out := filepath.Join(t.TempDir(), "x.js")
	require.Zero(t, execute([]string{"probe", server.URL, "--streams", "2", "--out", out}))
	require.FileExists(t, out)
}

func TestCtrlCIsNotAFindingOfDoctor(t *testing.T) {
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
