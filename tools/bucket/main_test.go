package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard/store"
	"github.com/sse-soak/sse-soak/test/address"
)

// The bucket of the local overlay supports the S3 operations of runners and soak, also after a restart.
func TestBucketStoresShards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, start := range []string{"first", "again"} {
		at := address.Reserve(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- serve(ctx, "soak", at, dir) }()
		s, err := store.Open(ctx, "s3://soak/t?endpoint=http://"+at+"&use_path_style=true&region=us-east-1&anonymous=true")
		require.NoError(t, err)
		within, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		names, err := s.Names(within)
		require.NoError(t, err)
		if start == "first" {
			assert.Empty(t, names, "a run without files is empty, not missing")
			require.NoError(t, s.Put(within, "runner-1.json.gz", []byte("half")))
			require.NoError(t, s.Put(within, "runner-1.json.gz", []byte("whole")))
		} else {
			assert.Equal(t, []string{"runner-1.json.gz"}, names)
			data, err := s.Get(within, "runner-1.json.gz")
			require.NoError(t, err)
			assert.Equal(t, "whole", string(data))
		}
		require.NoError(t, s.Close())
		stop()
		require.NoError(t, <-ended)
	}
}
