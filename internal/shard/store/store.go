// Package store holds the files of a run, which runners write and a merge reads: in a folder, or in a bucket of object storage. A
// file is small, and complete or missing.
package store

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// A Store holds files by name. It is safe for concurrent use.
type Store interface {
	// Put stores data under a name, whole or not at all, and replaces an existing file. It retries transient errors, such as a
	// missing response, until ctx ends. It returns a permanent error, such as access denied, at once.
	Put(ctx context.Context, name string, data []byte) error
	// Names returns the names of all files, sorted, without folders.
	Names(ctx context.Context) ([]string, error)
	// Get returns the content of a file.
	Get(ctx context.Context, name string) ([]byte, error)
	// At returns the location of a file, for people.
	At(name string) string
	Close() error
}

// Open opens a location: the path of a folder, file:///FOLDER, or s3://BUCKET/PREFIX with the parameters of gocloud.dev (region,
// endpoint, use_path_style, profile, …). It does not check that it exists.
func Open(ctx context.Context, location string) (Store, error) {
	scheme, _, isURL := strings.Cut(location, "://")
	if !isURL {
		return Folder(location), nil
	}
	u, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("%q is not a location for shards: %w", location, err)
	}
	switch scheme {
	case "file":
		return openFileURL(u)
	case "s3":
		return openBucket(ctx, u)
	}
	return nil, fmt.Errorf("%q is not a location for shards: name a folder, file:///FOLDER or s3://BUCKET/PREFIX", location)
}

func openFileURL(u *url.URL) (Store, error) {
	switch {
	case u.RawQuery != "":
		return nil, fmt.Errorf("%s: a folder takes no parameters", u)
	case u.Host != "" && u.Host != "localhost" || u.Path == "":
		return nil, fmt.Errorf("%s: write it with three slashes, file:///FOLDER", u)
	}
	return Folder(filepath.FromSlash(u.Path)), nil
}

// Create opens a location for writing: it creates a missing folder, but no bucket.
func Create(ctx context.Context, location string) (Store, error) {
	s, err := Open(ctx, location)
	if err != nil {
		return nil, err
	}
	if f, ok := s.(Folder); ok {
		if err := os.MkdirAll(string(f), 0o755); err != nil { // #nosec G301 -- results are for all users to read
			return nil, fmt.Errorf("make the folder of the shards: %w", err)
		}
	}
	return s, nil
}

// Join returns the location of a name inside a location.
func Join(location, name string) string {
	if !strings.Contains(location, "://") {
		return filepath.Join(location, name)
	}
	before, query := cutQuery(location)
	return before + "/" + name + query
}

// Split separates the last element of a location; Join is its inverse.
func Split(location string) (parent, name string) {
	if !strings.Contains(location, "://") {
		return filepath.Dir(location), filepath.Base(location)
	}
	before, query := cutQuery(location)
	name = path.Base(before)
	return strings.TrimSuffix(before, "/"+name) + query, name
}

// cutQuery separates the parameters of a URL, with their question mark.
func cutQuery(location string) (before, query string) {
	end := len(location)
	if i := strings.IndexByte(location, '?'); i >= 0 {
		end = i
	}
	return strings.TrimRight(location[:end], "/"), location[end:]
}
