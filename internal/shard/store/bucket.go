package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"github.com/cenkalti/backoff/v5"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

// attemptTimeout is the timeout of one attempt: half a megabit per second suffices for a shard of a few megabytes.
const attemptTimeout = time.Minute

// firstPause and longestPause limit the mean pause, which doubles. Each pause is random, because a thousand runners may
// end together.
const firstPause, longestPause = 500 * time.Millisecond, 15 * time.Second

// A bucket is a store on an S3 server, where a PUT is atomic.
type bucket struct {
	blob  *blob.Bucket
	name  string        // s3://BUCKET/PREFIX without parameters, for messages
	pause time.Duration // mean pause after the first failure
}

// openBucket opens a bucket with the credentials of the AWS SDK (environment, profile, role). It sends no request.
func openBucket(ctx context.Context, u *url.URL) (Store, error) {
	prefix := strings.Trim(u.Path, "/")
	b, err := openS3(ctx, &url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: u.RawQuery})
	if err != nil {
		return nil, err
	}
	s := &bucket{blob: b, name: strings.TrimSuffix("s3://"+u.Host+"/"+prefix, "/"), pause: firstPause}
	if prefix != "" {
		s.blob = blob.PrefixedBucket(b, prefix+"/")
	}
	return s, nil
}

// openS3 opens a bucket whose client does not retry, because its retries would hide the cause of a failure at the
// timeout. The client does not warn about servers without checksums, because a shard has its own checksum.
func openS3(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	var opener s3blob.URLOpener
	b, err := opener.OpenBucketURL(ctx, u)
	if err != nil {
		return nil, err
	}
	var client *s3.Client
	if !b.As(&client) {
		return b, nil
	}
	options := client.Options()
	options.Retryer, options.Logger = aws.NopRetryer{}, logging.Nop{}
	return s3blob.OpenBucket(ctx, s3.New(options), u.Host, &opener.Options)
}

func (b *bucket) Put(ctx context.Context, name string, data []byte) error {
	return b.try(ctx, "write", name, func(ctx context.Context) error {
		// WriteAll sends one part at a time, to save memory for the open streams of the process.
		return b.blob.WriteAll(ctx, name, data, &blob.WriterOptions{
			BufferSize: 5 << 20, MaxConcurrency: 1, ContentType: "application/octet-stream",
		})
	})
}

func (b *bucket) Names(ctx context.Context) (names []string, err error) {
	err = b.try(ctx, "list", "", func(ctx context.Context) error {
		names = names[:0]
		all := b.blob.List(&blob.ListOptions{Delimiter: "/"})
		for {
			o, err := all.Next(ctx)
			if err == io.EOF { // not errors.Is: a closed connection is an error that wraps io.EOF
				return nil
			}
			if err != nil {
				return err
			}
			if !o.IsDir && o.Key != "" {
				names = append(names, o.Key)
			}
		}
	})
	slices.Sort(names)
	return names, err
}

func (b *bucket) Get(ctx context.Context, name string) (data []byte, err error) {
	err = b.try(ctx, "read", name, func(ctx context.Context) (err error) {
		data, err = b.read(ctx, name)
		return err
	})
	return data, err
}

func (b *bucket) read(ctx context.Context, name string) (data []byte, err error) {
	r, err := b.blob.NewReader(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.Size() > maxBytes {
		return nil, tooLargeError(r.Size())
	}
	return io.ReadAll(io.LimitReader(r, maxBytes))
}

func (b *bucket) At(name string) string { return b.name + "/" + name }

func (b *bucket) Close() error { return b.blob.Close() }

// try retries do until it succeeds, fails permanently, or ctx ends.
func (b *bucket) try(ctx context.Context, verb, name string, do func(context.Context) error) error {
	var last error
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.Multiplier = b.pause, longestPause, 2
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		err := do(attempt)
		if err == nil {
			return struct{}{}, nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // otherwise err is the error of ctx
		}
		if isPermanent(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
		reportRetry(ctx, fmt.Sprintf("%s %s: %v; trying again", verb, b.At(name), explain(err)))
	}))
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, b.At(name), explain(last))
	}
	return nil
}
