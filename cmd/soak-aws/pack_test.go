package main

import (
	"bufio"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPackOfTheStack(t *testing.T) {
	t.Parallel()
	images := savedImage(t, "amd64", "backend", elfAMD64)
	file := filepath.Join(t.TempDir(), "stack.tar.gz")
	require.NoError(t, pack("../..", []string{images}, file))
	inside := map[string]bool{}
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, eachFile(f, func(name string, content *bufio.Reader) error {
		inside[name] = true
		_, err := io.Copy(io.Discard, content)
		return err
	}))
	for _, name := range []string{"compose.yaml", ".env.example", "infra/compose/env", "infra/compose/docker-reader.conf", "infra/prometheus/rules/alerts.yml", "infra/prometheus/runners-aws.yml", packedImages + filepath.Base(images)} {
		assert.True(t, inside[name], name)
	}
	for name := range inside {
		assert.NotRegexp(t, `\.go$|^\.env$|^certs/`, name, "neither code nor secrets")
	}

	// Another archive would make another host.
	sum := sumOf(t, file)
	require.NoError(t, os.Chtimes(images, time.Time{}, time.Now().Add(time.Hour)))
	require.NoError(t, pack("../..", []string{images}, file))
	assert.Equal(t, sum, sumOf(t, file))
}

func TestPackOfImagesForAnotherPlatform(t *testing.T) {
	t.Parallel()
	err := pack("../..", []string{savedImage(t, "amd64", "backend", machO)}, filepath.Join(t.TempDir(), "stack.tar.gz"))
	require.ErrorContains(t, err, "backend in the image is built for another system than Linux")
}

func sumOf(t *testing.T, file string) [sha256.Size]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return sha256.Sum256(text)
}
