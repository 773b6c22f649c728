//go:build aws

package check

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A stateBucket implements the part of S3 that terraform's backend needs: objects by their path.
type stateBucket struct {
	mu      sync.Mutex
	objects map[string][]byte
}

func (b *stateBucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	object, found := b.objects[r.URL.Path]
	switch {
	case r.URL.Query().Has("list-type"):
		fmt.Fprint(w, `<ListBucketResult>`)
		for path := range b.objects {
			fmt.Fprintf(w, `<Contents><Key>%s</Key></Contents>`, strings.SplitN(path, "/", 3)[2])
		}
		fmt.Fprint(w, `</ListBucketResult>`)
	case r.Method == http.MethodPut:
		b.objects[r.URL.Path], _ = io.ReadAll(r.Body)
	case r.Method == http.MethodDelete:
		delete(b.objects, r.URL.Path)
	case !found:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `<Error><Code>NoSuchKey</Code></Error>`)
	case r.Method == http.MethodHead:
		w.Header().Set("Content-Length", fmt.Sprint(len(object)))
	default:
		_, _ = w.Write(object)
	}
}

// TestStateInABucket uncomments the backend in backend.tf, and creates the workspace of a deployment in a fake bucket.
func TestStateInABucket(t *testing.T) {
	t.Parallel()
	dir := initCopy(t)
	bucket := &stateBucket{objects: map[string][]byte{}}
	server := httptest.NewServer(bucket)
	t.Cleanup(server.Close)
	file := filepath.Join(dir, "backend.tf")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	text = regexp.MustCompile(`(?m)^# ([t} ].*|})$`).ReplaceAll(text[strings.Index(string(text), "# terraform {"):], []byte("$1"))
	require.NoError(t, os.WriteFile(file, text, 0o644))
	runTerraform := func(args ...string) {
		run(t, dir, "env", slices.Concat(standIn.env, []string{
			"AWS_ENDPOINT_URL_S3=" + server.URL, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true", "terraform",
		}, args)...)
	}
	runTerraform("init", "-input=false", "-no-color", "-reconfigure", "-backend-config=use_path_style=true",
		"-backend-config=skip_credentials_validation=true", "-backend-config=skip_requesting_account_id=true")
	runTerraform("workspace", "select", "-or-create", "second")
	assert.Contains(t, bucket.objects, "/my-terraform-state/env:/second/sse-soak/terraform.tfstate")
	for path := range bucket.objects {
		assert.NotContains(t, path, ".tflock", "the lock must be released")
	}
}
