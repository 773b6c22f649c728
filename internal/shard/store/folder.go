package store

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sse-soak/sse-soak/internal/safefile"
)

// A Folder is a Store in a folder of this machine. Its value is the path.
type Folder string

var _ Store = Folder("")

// Put implements Store. The folder must exist.
func (f Folder) Put(ctx context.Context, name string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("write %s: %w", f.At(name), err)
	}
	return f.Write(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Write stores the output of fill as a file; see safefile.Write.
func (f Folder) Write(name string, fill func(io.Writer) error) error {
	return safefile.Write(f.At(name), fill)
}

// Names implements Store.
func (f Folder) Names(context.Context) ([]string, error) {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, e := range entries {
		if !e.IsDir() && e.Name()[0] != '.' {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Get implements Store.
func (f Folder) Get(_ context.Context, name string) ([]byte, error) {
	return safefile.Read(f.At(name), maxBytes)
}

// At implements Store.
func (f Folder) At(name string) string { return filepath.Join(string(f), name) }

// Close implements Store.
func (Folder) Close() error { return nil }
