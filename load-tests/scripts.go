// Package scripts embeds the k6 scripts of this folder, so that soak needs no files except itself and k6.
package scripts

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sse-soak/sse-soak/internal/safefile"
)

//go:embed http lib services sse types
var files embed.FS

// Folder is the name of the folder of scripts in the repository.
const Folder = "load-tests"

// Write writes all scripts into a folder, which it creates if necessary. It replaces only files whose content differs.
func Write(folder string) error {
	return eachFile(func(name string, content []byte) error {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if existing, err := os.ReadFile(path); err == nil && bytes.Equal(existing, content) { // #nosec G304 -- a script in the folder of the user
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // #nosec G301 -- scripts are for all users
			return fmt.Errorf("write the scripts: %w", err)
		}
		return safefile.Write(path, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
	})
}

// CacheFolder returns a folder, in the user's cache, with all embedded scripts. Each version of the scripts has its own
// folder. CacheFolder restores files that have been changed.
func CacheFolder() (string, error) {
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the k6 scripts: %w; set XDG_CACHE_HOME (on macOS: HOME) to a writable folder", err)
	}
	hash := sha256.New()
	err = eachFile(func(name string, content []byte) error {
		fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
		return nil
	})
	if err != nil {
		return "", err
	}
	folder := filepath.Join(caches, "sse-soak", hex.EncodeToString(hash.Sum(nil))[:16], Folder)
	if err := Write(folder); err != nil {
		return "", fmt.Errorf("%w; set XDG_CACHE_HOME (on macOS: HOME) to a writable folder", err)
	}
	return folder, nil
}

// eachFile calls do for each embedded file, in the order of the names.
func eachFile(do func(name string, content []byte) error) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		return do(name, content)
	})
}
