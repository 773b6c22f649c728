package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Headers of programs.
const (
	elfAMD64 = "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00"
	elfARM64 = "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
	machO    = "\xcf\xfa\xed\xfe\x0c\x00\x00\x01\x00\x00\x00\x00\x02\x00\x00\x00\x10\x00\x00\x00"
)

// savedImage is an image as `docker save | gzip` leaves it, with one program in its last layer.
func savedImage(t *testing.T, architecture, program, content string) string {
	t.Helper()
	base := tarred(t, "etc/passwd", "root:x:0:0::/:/bin/sh\n")
	layer := tarred(t, program, content)
	file := filepath.Join(t.TempDir(), "image.tar.gz")
	require.NoError(t, os.WriteFile(file, gzipped(t, tarred(t,
		"aa/VERSION", "1.0", // as Docker up to 24 has it
		"blobs/sha256/aa", base,
		"blobs/sha256/bb", string(gzipped(t, layer)), // the containerd store leaves layers compressed
		"blobs/sha256/cc", fmt.Sprintf(`{"architecture":%q,"os":"linux"}`, architecture),
		"manifest.json", `[{"Config":"blobs/sha256/cc","RepoTags":["sse-soak/k6:local"],"Layers":["blobs/sha256/aa","blobs/sha256/bb"]}]`)), 0o600))
	return file
}

// tarred is an archive of files: name, content, name, content.
func tarred(t *testing.T, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o755, Size: int64(len(files[i+1]))}))
		_, err := w.Write([]byte(files[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.String()
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// The architecture of an image may differ from that of the programs that were copied into it.
func TestImagesThatHostsCannotRun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ architecture, program, content, wrong string }{
		"as it has to be":        {"amd64", "usr/local/bin/k6", elfAMD64, ""},
		"of a laptop's platform": {"arm64", "usr/local/bin/k6", elfARM64, "the image sse-soak/k6:local is for linux/arm64, and its hosts are linux/amd64"},
		"with a Mac's program":   {"amd64", "usr/local/bin/k6", machO, "usr/local/bin/k6 in the image is built for another system than Linux"},
		"with an arm64 program":  {"amd64", "usr/local/bin/soak", elfARM64, "usr/local/bin/soak in the image is built for linux/arm64"},
		"without programs":       {"amd64", "bin/sh", elfAMD64, "none of the programs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			images, err := readImages(savedImage(t, tt.architecture, tt.program, tt.content))
			require.NoError(t, err)
			if err = images.fits("amd64"); tt.wrong == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, tt.wrong)
			}
		})
	}
}

func TestWhatIsNoImage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "image.tar.gz")
	require.NoError(t, os.WriteFile(file, []byte("an image"), 0o600))
	_, err := readImages(file)
	require.ErrorContains(t, err, "image.tar.gz is no archive of `docker save`")
}

// It is looked into before terraform makes anything for it.
func TestUpLooksIntoTheImage(t *testing.T) {
	t.Parallel()
	d := &deployment{image: savedImage(t, "amd64", "usr/local/bin/k6", elfAMD64)}
	require.NoError(t, d.imageFits(settings{RunnerArch: "amd64"}))
	require.ErrorContains(t, d.imageFits(settings{RunnerArch: "arm64"}), "is for linux/amd64, and its hosts are linux/arm64: `make aws-up` builds it for them")
}
