package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

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
