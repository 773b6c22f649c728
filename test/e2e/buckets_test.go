//go:build e2e

package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakebucket"
)

// A faultyBucket is an S3 server that runs in the process of the test. It can be unreachable, reject writes, truncate
// shards, and list shards that are missing.
type faultyBucket struct {
	location    string // URL of the shards
	unreachable atomic.Bool
	readOnly    atomic.Bool // writes are rejected
	truncates   atomic.Bool // downloads end after half of the shard
	incomplete  atomic.Bool // shards are listed, but missing
}

func startBucket(t *testing.T) *faultyBucket {
	t.Helper()
	faker, b := fakebucket.New(t, "soaks"), &faultyBucket{}
	b.location = "s3://soaks/all" + fakebucket.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.unreachable.Load() {
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = conn.Close()
			}
			return
		}
		if b.readOnly.Load() && r.Method == http.MethodPut {
			http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
			return
		}
		switch isShard := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".json.gz"); {
		case isShard && b.incomplete.Load():
			http.Error(w, "<Error><Code>NoSuchKey</Code></Error>", http.StatusNotFound)
			return
		case !isShard || !b.truncates.Load():
			faker.ServeHTTP(w, r)
			return
		}
		response := httptest.NewRecorder()
		faker.ServeHTTP(response, r)
		w.Header().Set("Last-Modified", response.Header().Get("Last-Modified"))
		_, _ = w.Write(response.Body.Bytes()[:response.Body.Len()/2])
	}))
	return b
}

// soak reports an unreachable bucket before the load, and Ctrl-C ends the run.
func TestUnreachableBucketFailsBeforeTheLoad(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "--connections", "20", "--seconds", "600", "--noop-interval", "1",
		"--shards", "s3://soaks/all?region=us-east-1&use_path_style=true&endpoint=http://127.0.0.1:1")
	await(t, "soak must report the error", func() bool { return strings.Contains(r.out.String(), "connection refused; trying again") })
	start := time.Now()
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGINT))
	require.Equal(t, 2, r.end(), r.out.String())
	require.Less(t, time.Since(start), 10*time.Second)
	require.Contains(t, r.out.String(), "stopped before the start, so no load was generated")
	require.NotContains(t, r.out.String(), "/20 open", "the load must not start")
	require.NoFileExists(t, r.dir.Path(results.ManifestFile))
}

func TestLostBucketIsReported(t *testing.T) {
	t.Parallel()
	b := startBucket(t)
	r := begin(t, nil, "--connections", "20", "--seconds", "8", "--noop-interval", "1", "--shards", b.location)
	r.awaitStreams("20")
	b.unreachable.Store(true)
	await(t, "soak must report the error", func() bool {
		return regexp.MustCompile(`runner 1: write s3://soaks/all/t/runner-1-\S+: .*; trying again`).MatchString(r.out.String())
	})
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGINT))
	start := time.Now()
	v := r.verdict()
	require.Less(t, time.Since(start), 40*time.Second)
	require.Equal(t, verdict.Invalid, v.Verdict)
	require.Contains(t, reasons(v), "the shards were not collected", r.out.String())
	files := regexp.MustCompile(`saved as (\S+\.json\.gz)`).FindStringSubmatch(r.out.String())
	require.NotNil(t, files, r.out.String())
	require.NoError(t, os.Remove(files[1]))
}

// run returns the URL of the run t in the bucket.
func (b *faultyBucket) run() string { return strings.Replace(b.location, "all", "all/t", 1) }

// merge judges the run t from the bucket, in a new folder.
func (b *faultyBucket) merge(t *testing.T) (v *verdict.Verdict, text string) {
	t.Helper()
	out := t.TempDir()
	code, text := merge(t, b.run(), out)
	v = readVerdict(t, results.Dir(filepath.Join(out, "t")))
	require.Equal(t, v.Verdict.ExitCode(), code, text)
	return v, text
}

// requireDamageIsFound requires that missing or truncated objects make the verdict of a run in a bucket invalid. It
// also requires errors for a missing bucket, and for another run with the same test id.
func requireDamageIsFound(t *testing.T, b *faultyBucket) {
	t.Helper()
	b.truncates.Store(true)
	v, text := b.merge(t)
	require.Equal(t, verdict.Invalid, v.Verdict, text)
	require.Contains(t, reasons(v), "not a complete shard")
	b.truncates.Store(false)

	b.incomplete.Store(true)
	code, text := merge(t, b.run(), t.TempDir())
	require.Equal(t, 2, code, text)
	b.incomplete.Store(false)

	code, text = merge(t, strings.Replace(b.run(), "soaks", "none", 1), t.TempDir())
	require.Equal(t, 2, code, text)
	require.Contains(t, text, "INVALID: s3://none/all/t")
	require.Contains(t, text, "the bucket does not exist; create it, or correct its name and region (NoSuchBucket: The specified bucket does not exist)")

	second := begin(t, nil, "--connections", "20", "--seconds", "8", "--noop-interval", "1", "--shards", b.location)
	require.Equal(t, 2, second.end(), second.out.String())
	require.Contains(t, second.out.String(), "belongs to an earlier run; choose another --testid")
}
