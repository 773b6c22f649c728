package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"
)

var buildTime = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// newProgram returns a program whose file was modified just now.
func newProgram(t *testing.T, name, text string) file {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return file{name: name, path: path, mode: 0o755}
}

func TestArchivesAreReproducible(t *testing.T) {
	t.Parallel()
	files := []file{newProgram(t, "x/soak", "program"), {name: "x/NOTICE", text: []byte("terms")}, newProgram(t, "x/k6", "other")}
	otherOrder := []file{newProgram(t, "x/k6", "other"), newProgram(t, "x/soak", "program"), files[1]}
	for _, write := range []func(io.Writer, []file, time.Time) error{writeTarGz, writeZip} {
		var first, second bytes.Buffer
		require.NoError(t, write(&first, files, buildTime))
		require.NoError(t, write(&second, otherOrder, buildTime))
		require.Equal(t, first.Bytes(), second.Bytes())
	}

	var out bytes.Buffer
	require.NoError(t, writeTarGz(&out, files, buildTime))
	unpacked, err := gzip.NewReader(&out)
	require.NoError(t, err)
	require.True(t, unpacked.ModTime.IsZero(), "the gzip header must have no time, got %s", unpacked.ModTime)
	var names []string
	for archive := tar.NewReader(unpacked); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.Equal(t, buildTime, h.ModTime.UTC())
		require.Zero(t, h.Uid+h.Gid)
		require.Empty(t, h.Uname+h.Gname)
		names = append(names, h.FileInfo().Mode().String()+" "+h.Name)
	}
	require.Equal(t, []string{"-rw-r--r-- x/NOTICE", "-rwxr-xr-x x/k6", "-rwxr-xr-x x/soak"}, names)

	out.Reset()
	require.NoError(t, writeZip(&out, files, buildTime))
	unzipped, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	require.Equal(t, "x/soak", unzipped.File[2].Name)
	require.Equal(t, buildTime, unzipped.File[2].Modified.UTC())
}

func TestVersionOfTheChartIsRequired(t *testing.T) {
	t.Parallel()
	r := &release{root: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(r.root, "package.json"), []byte(`{"devDependencies":{"other":"1"}}`), 0o600))
	_, err := r.chart()
	require.EqualError(t, err, "find the version of uPlot: package.json has no uplot in devDependencies")
}

func TestImageHasBothArchitectures(t *testing.T) {
	t.Parallel()
	var digests []string
	for range 2 {
		r := release{out: t.TempDir(), version: "v1.2.3", commit: "c0ffee", time: buildTime}
		files := map[platform][]file{{"darwin", "arm64"}: nil}
		for _, arch := range []string{"amd64", "arm64"} {
			files[platform{"linux", arch}] = []file{newProgram(t, "soak", arch), {name: "LICENSE", text: []byte("terms")}}
		}
		require.NoError(t, r.image(files))
		all, err := layout.ImageIndexFromPath(filepath.Join(r.out, "sse-soak_1.2.3_image"))
		require.NoError(t, err)
		outerManifest, err := all.IndexManifest()
		require.NoError(t, err)
		require.Len(t, outerManifest.Manifests, 1)
		require.Equal(t, "1.2.3", outerManifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
		index, err := all.ImageIndex(outerManifest.Manifests[0].Digest)
		require.NoError(t, err)
		require.NoError(t, validate.Index(index))
		manifest, err := index.IndexManifest()
		require.NoError(t, err)
		require.Equal(t, "v1.2.3", manifest.Annotations["org.opencontainers.image.version"])
		var architectures []string
		for _, m := range manifest.Manifests {
			architectures = append(architectures, m.Platform.String())
			digests = append(digests, m.Digest.String())
			image, err := index.Image(m.Digest)
			require.NoError(t, err)
			config, err := image.ConfigFile()
			require.NoError(t, err)
			require.Equal(t, m.Platform.Architecture, config.Architecture)
			require.Equal(t, "c0ffee", config.Config.Labels["org.opencontainers.image.revision"])
			require.Equal(t, license, config.Config.Labels["org.opencontainers.image.licenses"])
			layers, err := image.Layers()
			require.NoError(t, err)
			require.Len(t, layers, 1)
			content, err := layers[0].Uncompressed()
			require.NoError(t, err)
			var names []string
			for archive := tar.NewReader(content); ; {
				h, err := archive.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				names = append(names, h.Name)
			}
			require.Equal(t, []string{"tmp/", "work/", "licenses/LICENSE", "soak"}, names)
		}
		require.Equal(t, []string{"linux/amd64", "linux/arm64"}, architectures)
	}
	require.Equal(t, digests[:2], digests[2:], "the same programs must have the same image")
}

func TestOnlyReleasesAreRemoved(t *testing.T) {
	t.Parallel()
	r := release{out: t.TempDir()}
	for _, name := range []string{sums, "sse-soak_1.0.0_linux_amd64.tar.gz"} {
		require.NoError(t, os.WriteFile(filepath.Join(r.out, name), nil, 0o644))
	}
	require.NoError(t, r.removeOld())
	entries, err := os.ReadDir(r.out)
	require.NoError(t, err)
	require.Empty(t, entries)

	require.NoError(t, os.WriteFile(filepath.Join(r.out, "other.txt"), nil, 0o644))
	require.ErrorContains(t, r.removeOld(), "other.txt, which is not a file of a release")
}

func TestPlatforms(t *testing.T) {
	t.Parallel()
	all, err := parsePlatforms(platformNames())
	require.NoError(t, err)
	require.Equal(t, platforms, all)
	_, err = parsePlatforms("linux/amd64,plan9/386")
	require.ErrorContains(t, err, `unknown platform "plan9/386"; use one of linux/amd64`)
}
