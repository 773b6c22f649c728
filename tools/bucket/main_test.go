package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard/store"
	"github.com/sse-soak/sse-soak/test/address"
)

// The bucket supports the S3 operations of runners and soak, and keeps its objects across a restart.
func TestBucketStoresShards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, start := range []string{"first", "again"} {
		listen := address.Reserve(t)
		ctx, stop := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- serve(ctx, "soak", listen, dir) }()
		s, err := store.Open(ctx, "s3://soak/t?endpoint=http://"+listen+"&use_path_style=true&region=us-east-1&anonymous=true")
		require.NoError(t, err)
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		names, err := s.Names(limited)
		require.NoError(t, err)
		if start == "first" {
			assert.Empty(t, names, "a run without files must have no names, and no error")
			require.NoError(t, s.Put(limited, "runner-1.json.gz", []byte("half")))
			require.NoError(t, s.Put(limited, "runner-1.json.gz", []byte("whole")))
		} else {
			assert.Equal(t, []string{"runner-1.json.gz"}, names)
			data, err := s.Get(limited, "runner-1.json.gz")
			require.NoError(t, err)
			assert.Equal(t, "whole", string(data))
		}
		require.NoError(t, s.Close())
		stop()
		require.NoError(t, <-result)
	}
}

// A stopped bucket completes an upload in progress.
func TestStopCompletesUploads(t *testing.T) {
	t.Parallel()
	listen := address.Reserve(t)
	ctx, stop := context.WithCancel(t.Context())
	result := make(chan error, 1)
	dir := t.TempDir()
	go func() { result <- serve(ctx, "soak", listen, dir) }()
	var conn net.Conn
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", listen)
		conn = c
		return err == nil
	}, time.Minute, time.Millisecond, "the server must listen")
	defer conn.Close()
	_, err := fmt.Fprintf(conn, "PUT /soak/a HTTP/1.1\r\nHost: b\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusContinue, response.StatusCode, "the server must read the body")
	stop()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, time.Minute, time.Millisecond, "the server must stop listening")
	_, err = fmt.Fprint(conn, "whole")
	require.NoError(t, err)
	response, err = http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, <-result)
}
