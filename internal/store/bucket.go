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

// How long one attempt may take. A shard is some megabytes at most: a minute lets it through
// half a megabit per second.
const attempt = time.Minute

// Between attempts, doubled each time and spread at random: a thousand runners end at once.
const firstPause, longestPause = 500 * time.Millisecond, 15 * time.Second

// A bucket is a store at an S3 server. A PUT is whole or not there by itself.
type bucket struct {
	blob  *blob.Bucket
	shown string        // for people: s3://BUCKET/PREFIX without parameters
	pause time.Duration // after the first failure
}

// openBucket finds credentials as the AWS SDK does: environment, profile, role of the machine.
// That asks nobody yet.
func openBucket(ctx context.Context, u *url.URL) (Store, error) {
	if u.Host == "" {
		return nil, fmt.Errorf("%s names no bucket: write s3://BUCKET/PREFIX", u)
	}
	prefix := strings.Trim(u.Path, "/")
	b, err := openS3(ctx, &url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: u.RawQuery})
	if err != nil {
		return nil, err
	}
	s := &bucket{blob: b, shown: strings.TrimSuffix("s3://"+u.Host+"/"+prefix, "/"), pause: firstPause}
	if prefix != "" {
		s.blob = blob.PrefixedBucket(b, prefix+"/")
	}
	return s, nil
}

// openS3 opens a bucket whose client leaves trying again to us: one that tries by itself hides
// why it did not get through when the time is up. Nor does it warn of servers without checksums:
// a shard has its own.
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

// Put implements Store.
func (b *bucket) Put(ctx context.Context, name string, data []byte) error {
	return b.try(ctx, "write", name, func(ctx context.Context) error {
		// One part at a time: this takes memory from the streams that the process holds.
		return b.blob.WriteAll(ctx, name, data, &blob.WriterOptions{
			BufferSize: 5 << 20, MaxConcurrency: 1, ContentType: "application/octet-stream",
		})
	})
}

// Names implements Store.
func (b *bucket) Names(ctx context.Context) (names []string, err error) {
	err = b.try(ctx, "list", "", func(ctx context.Context) error {
		names = names[:0]
		all := b.blob.List(&blob.ListOptions{Delimiter: "/"})
		for {
			o, err := all.Next(ctx)
			if err == io.EOF { // itself: a server that hangs up is an error that wraps it, and no end of the list
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

// Get implements Store.
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
	if r.Size() > mostBytes {
		return nil, tooLarge(r.Size())
	}
	return io.ReadAll(io.LimitReader(r, mostBytes))
}

// At implements Store.
func (b *bucket) At(name string) string { return b.shown + "/" + name }

// Close implements Store.
func (b *bucket) Close() error { return b.blob.Close() }

// try retries do until it succeeds, fails for good, or ctx ends.
func (b *bucket) try(ctx context.Context, verb, name string, do func(context.Context) error) error {
	var last error
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.Multiplier = b.pause, longestPause, 2
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		one, cancel := context.WithTimeout(ctx, attempt)
		defer cancel()
		err := do(one)
		if err == nil {
			return struct{}{}, nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // not what the end of ctx made of it
		}
		if permanent(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
		tellRetry(ctx, fmt.Sprintf("%s %s: %v; trying again", verb, b.At(name), explain(err)))
	}))
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, b.At(name), explain(last))
	}
	return nil
}
