// Package fakebucket is an S3 server for tests. It keeps its objects in memory.
package fakebucket

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"
)

// New returns an S3 server with an empty bucket of each name.
func New(t testing.TB, names ...string) http.Handler {
	t.Helper()
	memory := s3mem.New()
	for _, name := range names {
		require.NoError(t, memory.CreateBucket(name))
	}
	return gofakes3.New(memory).Server()
}

// Start serves a handler, such as the result of New, until the test ends. It returns the parameters that a bucket URL
// needs for this server.
func Start(t testing.TB, handler http.Handler) (parameters string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return "?region=us-east-1&use_path_style=true&endpoint=" + server.URL
}
