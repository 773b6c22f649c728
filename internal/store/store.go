// Package store is where runners leave the files of a run, and where a merge finds them: a
// folder, or a bucket of object storage. A file in it is small, and whole or not there.
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
	// Put stores data under name and replaces what was there: whole or not at all. It retries transient errors, such
	// as a server that does not answer, until ctx ends. A permanent one, such as access denied, it returns at once.
	Put(ctx context.Context, name string, data []byte) error
	// Names are the names of all files, sorted. Folders inside are left out.
	Names(ctx context.Context) ([]string, error)
	// Get returns the file of that name.
	Get(ctx context.Context, name string) ([]byte, error)
	// At is where the file of that name is, for people.
	At(name string) string
	Close() error
}

// Open opens a location: the path of a folder, file:///FOLDER, or s3://BUCKET/PREFIX with the
// parameters of gocloud.dev (region, endpoint, use_path_style, profile, …). It asks nobody yet
// whether it is there.
func Open(ctx context.Context, location string) (Store, error) {
	scheme, _, isURL := strings.Cut(location, "://")
	if !isURL {
		return Folder(location), nil
	}
	u, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("%q is no location for shards: %w", location, err)
	}
	switch scheme {
	case "file":
		return openFileURL(u)
	case "s3":
		return openBucket(ctx, u)
	}
	return nil, fmt.Errorf("%q is no location for shards: name a folder, file:///FOLDER or s3://BUCKET/PREFIX", location)
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

// Create is Open for whoever is going to write: a folder is made where there is none. A bucket
// never is.
func Create(ctx context.Context, location string) (Store, error) {
	s, err := Open(ctx, location)
	if err != nil {
		return nil, err
	}
	if f, ok := s.(Folder); ok {
		if err := os.MkdirAll(string(f), 0o755); err != nil { //nolint:gosec // G301: results are for all users to read
			return nil, fmt.Errorf("make the folder of the shards: %w", err)
		}
	}
	return s, nil
}

// Join is the location of name inside a location.
func Join(location, name string) string {
	if !strings.Contains(location, "://") {
		return filepath.Join(location, name)
	}
	before, query := cutQuery(location)
	return before + "/" + name + query
}

// Split cuts the last element off a location: Join of both is the location again.
func Split(location string) (parent, name string) {
	if !strings.Contains(location, "://") {
		return filepath.Dir(location), filepath.Base(location)
	}
	before, query := cutQuery(location)
	name = path.Base(before)
	return strings.TrimSuffix(before, "/"+name) + query, name
}

// cutQuery cuts the parameters off a URL, with their question mark.
func cutQuery(location string) (before, query string) {
	end := len(location)
	if i := strings.IndexByte(location, '?'); i >= 0 {
		end = i
	}
	return strings.TrimRight(location[:end], "/"), location[end:]
}
