package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

// IsBucket reports whether a location is in a bucket.
func IsBucket(location string) bool { return strings.HasPrefix(location, "s3://") }

// Upload copies a file of any size into a bucket, to s3://BUCKET/NAME with the parameters of Open. The SDK sends the
// file in parts, and retries them.
func Upload(ctx context.Context, file, location string) error {
	in, err := os.Open(file) // #nosec G304 -- the archive that was just written
	if err != nil {
		return err
	}
	defer in.Close()
	b, name, err := openFile(ctx, location)
	if err != nil {
		return err
	}
	err = b.Upload(ctx, name, in, &blob.WriterOptions{ContentType: "application/gzip"})
	if err := errors.Join(err, b.Close()); err != nil {
		address, _ := cutQuery(location)
		return fmt.Errorf("write %s: %w", address, explain(err))
	}
	return nil
}

// Download copies a file from a bucket over a local file. After an error, the local file may be incomplete.
func Download(ctx context.Context, location, file string) (err error) {
	b, name, err := openFile(ctx, location)
	if err != nil {
		return err
	}
	out, err := os.Create(file) // #nosec G304 -- the user names the folder
	if err != nil {
		return errors.Join(err, b.Close())
	}
	err = cmp.Or(b.Download(ctx, name, io.Writer(out), nil), out.Close(), b.Close())
	if err != nil {
		address, _ := cutQuery(location)
		return fmt.Errorf("read %s: %w", address, explain(err))
	}
	return nil
}

func openFile(ctx context.Context, location string) (*blob.Bucket, string, error) {
	u, err := url.Parse(location)
	if err != nil || u.Scheme != "s3" || u.Host == "" || strings.Trim(u.Path, "/") == "" {
		return nil, "", fmt.Errorf("location must be a file in a bucket, such as s3://BUCKET/NAME, got %q", location)
	}
	var opener s3blob.URLOpener
	b, err := opener.OpenBucketURL(ctx, &url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: u.RawQuery})
	return b, path.Clean(strings.Trim(u.Path, "/")), err
}
