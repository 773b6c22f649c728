package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// These tests do not use the credentials or profiles of the user.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestFolderStoresFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	for _, location := range []string{dir, "file://" + dir, "file://localhost" + dir} {
		s, err := Create(t.Context(), location)
		require.NoError(t, err)
		require.Equal(t, Folder(dir), s)
	}
	f := Folder(dir)
	require.NoError(t, f.Put(t.Context(), "b", []byte("one")))
	require.NoError(t, f.Put(t.Context(), "a", []byte("two")))
	require.NoError(t, f.Put(t.Context(), "b", []byte("three")), "a second write must replace the file")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "below"), 0o700))
	names, err := f.Names(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names)
	require.Equal(t, "three", get(t, f, "b"))
	require.NoError(t, f.Close())
	require.Error(t, Folder(filepath.Join(dir, "none")).Put(t.Context(), "x", nil), "Put must not create a missing folder")
}

func TestPutFailsAfterTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := Folder(t.TempDir())
	require.ErrorIs(t, f.Put(ctx, "x", nil), context.Canceled)
	names, err := f.Names(t.Context())
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestInvalidLocationsAreRejected(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"gs://bucket/x":               "location must be a folder, file:///FOLDER or s3://BUCKET/PREFIX",
		"file://folder/x":             "three slashes",
		"file://":                     `three slashes, such as file:///FOLDER, got "file://"`,
		"file:///x?create_dir=1":      "must not have parameters",
		"s3:///x":                     "must name a bucket",
		"s3://":                       `must name a bucket, such as s3://BUCKET/PREFIX, got "s3://"`,
		"s3://bucket/x?regoin=here":   "regoin",
		"s3://%zz":                    "parse the location of the shards",
		"s3://b?use_path_style=maybe": "maybe",
	} {
		_, err := Create(t.Context(), location)
		require.ErrorContains(t, err, want, location)
	}
}

// A location without a bucket must not become the path of a folder.
func TestJoinKeepsAMissingBucket(t *testing.T) {
	t.Parallel()
	for _, location := range []string{"s3://", "s3:///", "s3://?region=eu-central-1"} {
		_, err := Create(t.Context(), Join(location, "t"))
		require.ErrorContains(t, err, "must name a bucket", location)
	}
	require.Equal(t, "file:///t", Join("file:///", "t"))
}

func TestJoinAddsAFolderToALocation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ location, name, joined string }{
		{"a/b", "c", "a/b/c"},
		{".", "c", "c"},
		{"s3://b", "t", "s3://b/t"},
		{"s3://b/x/?region=r&endpoint=http://h:1", "t", "s3://b/x/t?region=r&endpoint=http://h:1"},
		{"file:///x", "t", "file:///x/t"},
	} {
		require.Equal(t, c.joined, Join(c.location, c.name))
		parent, name := Split(c.joined)
		require.Equal(t, c.name, name)
		require.Equal(t, c.joined, Join(parent, name))
	}
}

func TestMissingCredentialsAndRegionAreNamed(t *testing.T) {
	server := startS3(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	require.ErrorContains(t, server.open(t, "soaks/t").Put(withTimeout(t, time.Minute), "x", nil), "no credentials; set AWS_PROFILE")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	s, err := Create(t.Context(), "s3://soaks/t")
	require.NoError(t, err)
	defer s.Close()
	require.ErrorContains(t, s.Put(withTimeout(t, time.Minute), "x", nil), "the region is unknown; set AWS_REGION")
	require.Zero(t, server.requests.Load())
}
