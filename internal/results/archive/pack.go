package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/safefile"
)

// pack writes sumsFile to dir, and then all files of dir to an archive, in a folder named testID.
func pack(ctx context.Context, dir, testID, file string) error {
	names := []string{sumsFile, contentsFile} // HasData reads only these two
	var sums bytes.Buffer
	var size int64
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		in, err := files.Open(name)
		if err != nil {
			return err
		}
		defer in.Close()
		sum := sha256.New()
		n, err := io.Copy(sum, &interruptibleReader{ctx, in})
		if name != contentsFile {
			names = append(names, name)
		}
		size += n
		fmt.Fprintf(&sums, "%x  %s\n", sum.Sum(nil), name)
		return err
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, sumsFile), sums.Bytes(), 0o600)
	}
	if err != nil {
		return fmt.Errorf("pack the archive: %w", err)
	}
	if size > maxBytes {
		return fmt.Errorf("the results must have at most %s, got %s; remove files that no run writes", format.Bytes(maxBytes), format.Bytes(size))
	}
	level := gzip.DefaultCompression
	if size > baseBytes { // Open would reject the ratio of a log that repeats one line a million times
		var packed counter
		if err := write(ctx, &packed, dir, testID, names, level); err != nil {
			return fmt.Errorf("pack the archive: %w", err)
		}
		if size > maxRatio*int64(packed) {
			level = gzip.HuffmanOnly
		}
	}
	return safefile.Write(file, func(w io.Writer) error { return write(ctx, w, dir, testID, names, level) })
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func write(ctx context.Context, w io.Writer, dir, testID string, names []string, level int) error {
	zip, err := gzip.NewWriterLevel(w, level)
	if err != nil {
		return err
	}
	out := tar.NewWriter(zip)
	for _, name := range names {
		if err := add(ctx, out, filepath.Join(dir, name), path.Join(testID, name)); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), zip.Close())
}

func add(ctx context.Context, out *tar.Writer, file, name string) error {
	in, err := os.Open(file) // #nosec G304 -- in our temporary folder
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: info.Size(), ModTime: info.ModTime(), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err = io.Copy(out, &interruptibleReader{ctx, in})
	return err
}
