// Package store reads and writes the files of a run in a folder or in a bucket of object storage. A file of a Store is
// small, and either complete or missing. Upload and Download copy larger files.
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

// A Store holds files by name. It is safe for concurrent use. A bucket retries transient errors, such as a missing
// response, until ctx ends. It returns a permanent error, such as access denied, at once.
type Store interface {
	// Put stores data atomically under a name, and replaces an existing file.
	Put(ctx context.Context, name string, data []byte) error
	// Names returns the sorted names of all files, without folders. It omits the hidden files of a folder.
	Names(ctx context.Context) ([]string, error)
	// Get returns the content of a file.
	Get(ctx context.Context, name string) ([]byte, error)
	// At returns the location of a file, for messages.
	At(name string) string
	// Close closes the connections of a bucket. It has no effect on a folder.
	Close() error
}

// Open opens a location: the path of a folder, file:///FOLDER, or s3://BUCKET/PREFIX with the parameters of gocloud.dev
// (region, endpoint, use_path_style, profile, …). It does not check whether the location exists.
func Open(ctx context.Context, location string) (Store, error) {
	scheme, _, isURL := strings.Cut(location, "://")
	if !isURL {
		return Folder(location), nil
	}
	u, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("parse the location of the shards %q: %w", location, err)
	}
	switch scheme {
	case "file":
		return openFileURL(u, location)
	case "s3":
		if u.Host == "" {
			return nil, fmt.Errorf("location must name a bucket, such as s3://BUCKET/PREFIX, got %q", location)
		}
		return openBucket(ctx, u)
	}
	return nil, fmt.Errorf("location must be a folder, file:///FOLDER or s3://BUCKET/PREFIX, got %q", location)
}

func openFileURL(u *url.URL, location string) (Store, error) {
	switch {
	case u.RawQuery != "":
		return nil, fmt.Errorf("location of a folder must not have parameters, got %q", location)
	case u.Host != "" && u.Host != "localhost" || u.Path == "":
		return nil, fmt.Errorf("location of a folder must have three slashes, such as file:///FOLDER, got %q", location)
	}
	return Folder(filepath.FromSlash(u.Path)), nil
}

// Create opens a location for writing. It creates a missing folder, but not a bucket.
func Create(ctx context.Context, location string) (Store, error) {
	s, err := Open(ctx, location)
	if err != nil {
		return nil, err
	}
	if f, ok := s.(Folder); ok {
		if err := os.MkdirAll(string(f), 0o755); err != nil { // #nosec G301 -- results are for all users to read
			return nil, fmt.Errorf("create the folder of the shards: %w", err)
		}
	}
	return s, nil
}

// Join appends an element to a location, before the parameters.
func Join(location, name string) string {
	if !strings.Contains(location, "://") {
		return filepath.Join(location, name)
	}
	address, query := cutQuery(location)
	return address + "/" + name + query
}

// Split splits a location into its parent and its last element; Join is its inverse.
func Split(location string) (parent, name string) {
	if !strings.Contains(location, "://") {
		return filepath.Dir(location), filepath.Base(location)
	}
	address, query := cutQuery(location)
	name = path.Base(address)
	return strings.TrimSuffix(address, "/"+name) + query, name
}

// cutQuery separates the parameters of a URL, with their question mark. It removes slashes at the end of the path.
func cutQuery(location string) (address, query string) {
	end := len(location)
	if i := strings.IndexByte(location, '?'); i >= 0 {
		end = i
	}
	for address = location[:end]; strings.HasSuffix(address, "/") && !strings.HasSuffix(address, "://"); {
		address = address[:len(address)-1]
	}
	return address, location[end:]
}
