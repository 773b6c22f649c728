package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A file is an entry of an archive or an image.
type file struct {
	name string      // path in the archive, with slashes
	path string      // path of the file with the content; "": the field text has the content
	text []byte      // content if path is empty
	mode fs.FileMode // 0: 0644
}

func (f file) read() ([]byte, error) {
	if f.path == "" {
		return f.text, nil
	}
	return os.ReadFile(f.path)
}

func (f file) perm() int64 {
	if f.mode == 0 {
		return 0o644
	}
	return int64(f.mode.Perm())
}

// archive writes the archive for a platform, with one top-level folder, and the bill of materials of the programs.
func (r *release) archive(p platform, programs, common []file) error {
	base := fmt.Sprintf("%s_%s_%s_%s", name, r.bareVersion(), p.os, p.arch)
	write, suffix := writeTarGz, ".tar.gz"
	if p.os == "windows" {
		write, suffix = writeZip, ".zip"
	}
	files := slices.Concat(programs, common)
	for i := range files {
		files[i].name = path.Join(base, files[i].name)
	}
	out, err := os.Create(filepath.Join(r.out, base+suffix))
	if err == nil {
		err = errors.Join(write(out, files, r.time), out.Close())
	}
	if err != nil {
		return fmt.Errorf("write the archive for %s: %w", p, err)
	}
	return r.bill(base+suffix+".cdx.json", programs)
}

func sortByName(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.name, b.name) })
}

// writeTar writes a reproducible archive: files are sorted by name, have no owner, and share one modification time.
func writeTar(w io.Writer, files []file, modTime time.Time) error {
	archive := tar.NewWriter(w)
	for _, f := range sortByName(files) {
		content, err := f.read()
		if err != nil {
			return err
		}
		err = archive.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(content)), Mode: f.perm(), ModTime: modTime, Format: tar.FormatUSTAR,
		})
		if err == nil {
			_, err = archive.Write(content)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return archive.Close()
}

func writeTarGz(w io.Writer, files []file, modTime time.Time) error {
	gz := gzip.NewWriter(w) // the best compression costs 2.5 times the CPU and saves 0.2 %
	return errors.Join(writeTar(gz, files, modTime), gz.Close())
}

// writeZip writes a reproducible archive in ZIP format, with the same order and times as writeTar.
func writeZip(w io.Writer, files []file, modTime time.Time) error {
	archive := zip.NewWriter(w)
	for _, f := range sortByName(files) {
		content, err := f.read()
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: modTime}
		header.SetMode(fs.FileMode(f.perm()))
		entry, err := archive.CreateHeader(header)
		if err == nil {
			_, err = entry.Write(content)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return archive.Close()
}

// sums is the name of the file for sha256sum --check.
const sums = "SHA256SUMS"

// checksums writes the checksums of all files except the blobs of the image, whose checksums are in its index.
func (r *release) checksums() error {
	var out strings.Builder
	err := filepath.WalkDir(r.out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry != nil && entry.Name() == "blobs" {
				return filepath.SkipDir
			}
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.out, path)
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(content), filepath.ToSlash(name))
		return err
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(r.out, sums), []byte(out.String()), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the checksums: %w", err)
	}
	return nil
}
