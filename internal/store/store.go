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
	// Put stores data under name in the place of what was there: whole or not at all. What may
	// pass, such as a server that does not answer, is tried again until ctx ends; what will not,
	// such as access denied, is an error at once.
	Put(ctx context.Context, name string, data []byte) error
	// Names are the names of all files, sorted. Folders inside are left out.
	Names(ctx context.Context) ([]string, error)
	// Get returns the file of that name.
	Get(ctx context.Context, name string) ([]byte, error)
	// At is where the file of that name is, for people.
	At(name string) string
	Close() error
}

// Open opens a place: the path of a folder, file:///FOLDER, or s3://BUCKET/PREFIX with the
// parameters of gocloud.dev (region, endpoint, use_path_style, profile, …). It asks nobody yet
// whether the place is there.
func Open(ctx context.Context, place string) (Store, error) {
	scheme, _, isURL := strings.Cut(place, "://")
	if !isURL {
		return Folder(place), nil
	}
	u, err := url.Parse(place)
	if err != nil {
		return nil, fmt.Errorf("%q is no place for shards: %w", place, err)
	}
	switch scheme {
	case "file":
		return openFileURL(u)
	case "s3":
		return openBucket(ctx, u)
	}
	return nil, fmt.Errorf("%q is no place for shards: name a folder, file:///FOLDER or s3://BUCKET/PREFIX", place)
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
func Create(ctx context.Context, place string) (Store, error) {
	s, err := Open(ctx, place)
	if err != nil {
		return nil, err
	}
	if f, ok := s.(Folder); ok {
		if err := os.MkdirAll(string(f), 0o755); err != nil {
			return nil, fmt.Errorf("make the folder of the shards: %w", err)
		}
	}
	return s, nil
}

// Join is the place name inside place.
func Join(place, name string) string {
	if !strings.Contains(place, "://") {
		return filepath.Join(place, name)
	}
	before, query, has := strings.Cut(place, "?")
	before = strings.TrimRight(before, "/") + "/" + name
	if has {
		before += "?" + query
	}
	return before
}

// Split cuts the last element off a place: Join of both is the place again.
func Split(place string) (parent, name string) {
	if !strings.Contains(place, "://") {
		return filepath.Dir(place), filepath.Base(place)
	}
	before, query, has := strings.Cut(place, "?")
	before = strings.TrimRight(before, "/")
	name = path.Base(before)
	parent = strings.TrimSuffix(before, "/"+name)
	if has {
		parent += "?" + query
	}
	return parent, name
}
