//go:build unix

package main

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results/archive"
)

func TestClosedTerminalRemovesTheUnpackedFiles(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored, as under nohup")
	}
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
