package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// stackFiles are the files of this repository that the stack's host needs in addition to images, an override of compose.yaml included.
var stackFiles = []string{
	"compose.yaml", "compose.override.yaml", ".env.example", "infra/compose/env", "infra/compose/docker-reader.conf",
	"infra/prometheus/prometheus.yml", "infra/prometheus/runners-aws.yml", "infra/prometheus/rules", "grafana/provisioning", "grafana/dashboards",
}

// packedImages is the folder of the stack's images in the archive.
const packedImages = "images/"

// pack writes the archive for the stack's host: those files of the repository, as they lie there, and the images. The
// same content makes the same archive, since another one would make another host.
func pack(repository string, images []string, file string) error {
	for _, image := range images {
		archive, err := readImages(image)
		if err != nil {
			return err
		}
		if err := archive.fits("amd64"); err != nil {
			return err
		}
	}
	out, err := os.Create(file) //nolint:gosec // G304: the archive in bin/
	if err != nil {
		return err
	}
	defer out.Close()
	compressed := gzip.NewWriter(out)
	w := tar.NewWriter(compressed)
	for _, name := range stackFiles {
		if err := addTree(w, repository, name); err != nil {
			return fmt.Errorf("pack the stack: %w", err)
		}
	}
	for _, image := range images {
		if err := addFile(w, image, packedImages+filepath.Base(image)); err != nil {
			return fmt.Errorf("pack the stack: %w", err)
		}
	}
	return errors.Join(w.Close(), compressed.Close(), out.Close())
}

// addTree adds a file, or all of a folder in the order of their names.
func addTree(w *tar.Writer, repository, name string) error {
	err := filepath.WalkDir(filepath.Join(repository, name), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(repository, path)
		if err != nil {
			return err
		}
		return addFile(w, path, filepath.ToSlash(inside))
	})
	if errors.Is(err, fs.ErrNotExist) && strings.Contains(name, "override") {
		return nil
	}
	return err
}

// addFile adds a file without its owner and time, which would make each archive another one.
func addFile(w *tar.Writer, path, name string) error {
	f, err := os.Open(path) //nolint:gosec // G304: files of the repository
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
