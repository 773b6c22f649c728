// Package safefile writes files whole or not at all, and opens only regular files. Another user or an archive may have
// created a symbolic link, a pipe or a device with the expected name. Reading such a file could block or never end.
package safefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/sse-soak/sse-soak/internal/format"
)

// Limits of the files of a run, in bytes.
const (
	Document = 64 << 20 // a JSON or HTML document: it lists at most 50 findings of each kind
	Verdict  = 8 << 20  // verdict.json or run.json: the largest known file has 60 kB
	Table    = 1 << 30  // a file with one line per client or sample: a million clients need 200 MB
)

// Errors of Open, Read and JSON for a file that they refuse.
var (
	ErrNotRegular = errors.New("not a regular file; remove it") // a symbolic link, a pipe, a device or a folder
	ErrTooLarge   = errors.New("the file is too large")
)

// Open opens a regular file of at most limit bytes for reading. It does not follow a symbolic link in the last element
// of path, and does not wait for the writer of a pipe.
func Open(path string, limit int64) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() { // opening a device may have side effects
		return nil, withPath(path, ErrNotRegular)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|NoFollow|nonBlock, 0) // #nosec G304 -- a file of a run; it is checked below
	if err != nil {
		return nil, err // names the file
	}
	if err := check(f, limit); err != nil {
		_ = f.Close()
		return nil, withPath(path, err)
	}
	return f, nil
}

// check checks an open file, because another file may have replaced the one that Open checked.
func check(f *os.File, limit int64) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return ErrNotRegular
	case info.Size() > limit:
		return newTooLargeError(info.Size(), limit)
	}
	return nil
}

// Read returns the content of a file that Open accepts.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var content bytes.Buffer
	if info, err := f.Stat(); err == nil {
		content.Grow(int(info.Size()) + bytes.MinRead)
	}
	n, err := content.ReadFrom(io.LimitReader(f, limit+1))
	if err == nil && n > limit { // the file grew while it was read
		err = newTooLargeError(n, limit)
	}
	if err != nil {
		return nil, withPath(path, err)
	}
	return content.Bytes(), nil
}

// bytesPerValue limits the number of values of a JSON document to its maximum size divided by bytesPerValue. The 3
// bytes of "{}," use hundreds of bytes of memory.
const bytesPerValue = 64

// JSON decodes a JSON document of at most limit bytes, and limit/bytesPerValue values, into value.
func JSON(path string, limit int64, value any) error {
	content, err := Read(path, limit)
	if err != nil {
		return err
	}
	if n, highest := bytes.Count(content, []byte{','}), limit/bytesPerValue; int64(n) > highest {
		return withPath(path, fmt.Errorf("%w: it must have at most %d values, got %d; move it away", ErrTooLarge, highest, n))
	}
	if err := json.Unmarshal(content, value); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func newTooLargeError(size, limit int64) error {
	return fmt.Errorf("%w: it must be at most %s, got %s; move it away", ErrTooLarge, format.Bytes(limit), format.Bytes(size))
}

func withPath(path string, err error) error { return &fs.PathError{Op: "read", Path: path, Err: err} }

// Write writes the output of fill to a new file, and replaces path with that file. If the process or, on Unix, the
// machine fails meanwhile, path has either the old or the new content. The folder must exist.
func Write(path string, fill func(io.Writer) error) error {
	if err := replace(path, fill); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
