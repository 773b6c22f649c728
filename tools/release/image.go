package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// home is the web page of the repository, with documentation and source.
const home = "https://" + module

// image writes the image, if the release includes Linux, as an OCI layout: a folder that `crane push`, skopeo and
// podman can read. The image contains static programs and their licenses, but no shell.
func (r *release) image(files map[platform][]file) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	count := 0
	for _, p := range platforms {
		platformFiles, ok := files[p]
		if !ok || p.os != "linux" {
			continue
		}
		image, err := r.archImage(p, platformFiles)
		if err != nil {
			return fmt.Errorf("build the image for %s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
		count++
	}
	if count == 0 {
		return nil
	}
	indexCopy := mutate.Annotations(index, r.labels())
	labeledIndex, ok := indexCopy.(v1.ImageIndex)
	if !ok {
		return fmt.Errorf("label the image: %T is not an index", indexCopy)
	}
	// Tools require an outer index with a single, named entry.
	outerIndex := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: labeledIndex, Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": r.bareVersion()}},
	})
	if _, err := layout.Write(filepath.Join(r.out, fmt.Sprintf("%s_%s_image", name, r.bareVersion())), outerIndex); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	return nil
}

func (r *release) labels() map[string]string {
	all := map[string]string{
		"title": name, "description": "Checks that a service delivers every message of its Server-Sent Events streams",
		"version": r.version, "revision": r.commit, "created": r.time.Format(time.RFC3339), "licenses": license,
		"url": home, "source": home, "documentation": home + "/blob/main/docs/getting-started.md",
	}
	out := map[string]string{}
	for key, value := range all {
		if value != "" {
			out["org.opencontainers.image."+key] = value
		}
	}
	return out
}

func (r *release) archImage(p platform, contents []file) (v1.Image, error) {
	files := slices.Clone(contents)
	for i := range files {
		if files[i].mode == 0 { // a license
			files[i].name = "licenses/" + files[i].name
		}
	}
	var content bytes.Buffer
	if err := r.writeFolders(&content); err != nil {
		return nil, err
	}
	if err := writeTar(&content, files, r.time); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{
		Created: v1.Time{Time: r.time}, CreatedBy: "make release", Comment: name + " " + r.version,
	}})
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, r.config(p, image))
}

// writeFolders writes /tmp and /work, in which any user of the container may write. It does not end the archive,
// because files follow.
func (r *release) writeFolders(w io.Writer) error {
	archive := tar.NewWriter(w)
	for _, folder := range []string{"tmp/", "work/"} {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o1777, ModTime: r.time, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
	}
	return archive.Flush()
}

// config returns the configuration of the image. With its entrypoint, `docker run IMAGE run …` executes `soak run …`.
func (r *release) config(p platform, image v1.Image) *v1.ConfigFile {
	config, err := image.ConfigFile()
	if err != nil {
		panic(err) // the image is in memory
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: r.time}
	config.Config = v1.Config{
		Entrypoint: []string{"/soak"}, Cmd: []string{"--help"}, Env: []string{"PATH=/", "HOME=/tmp"},
		WorkingDir: "/work", User: "65532:65532", Labels: r.labels(), StopSignal: "SIGINT",
	}
	return config
}
