package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	prompb "buf.build/gen/go/prometheus/prometheus/protocolbuffers/go"
	"github.com/klauspost/compress/snappy"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/sse-soak/sse-soak/internal/results/archive"
	"github.com/sse-soak/sse-soak/test/fakebucket"
)

// runFolder returns the folder of a run, with only the files that an archive needs.
func runFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run-7")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "verdict.json"), []byte(`{"testid": "run-7", "verdict": "fail", "started_unix_s": 1700000000, "ended_unix_s": 1700003600}`), 0o600))
	return dir
}

// startBucket creates the bucket "kept", and returns the parameters of its URL.
func startBucket(t *testing.T) string {
	t.Helper()
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	return fakebucket.Start(t, fakebucket.New(t, "kept"))
}

func TestArchiveDescribesTheRun(t *testing.T) {
	t.Parallel()
	run := runFolder(t)
	require.NoError(t, os.WriteFile(filepath.Join(run, "verdict.json"), []byte(`{"testid": "run-7", "verdict": "invalid", "started_unix_s": 0, "ended_unix_s": 0}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(run, "k6.log"), []byte("Authorization: Bearer abc\n"), 0o600))
	var output bytes.Buffer
	require.NoError(t, makeArchive(t.Context(), archive.Source{Folder: run}, "", &output))
	require.Contains(t, output.String(), "run      run-7: invalid, at an unknown time\n", "a run without shards must have no times")
	require.Contains(t, output.String(), "\nsecrets  were redacted in k6.log\n")
}

func TestArchiveToAFileOrBucket(t *testing.T) {
	query := startBucket(t)
	t.Setenv("BACKEND_TOKEN", "soak")
	run, folder := runFolder(t), t.TempDir()
	for to, location := range map[string]string{
		"":                                   filepath.Join(filepath.Dir(run), "run-7.tar.gz"),
		folder:                               filepath.Join(folder, "run-7.tar.gz"),
		filepath.Join(folder, "mine.tar.gz"): filepath.Join(folder, "mine.tar.gz"),
		"s3://kept/archives" + query:         "s3://kept/archives/run-7.tar.gz",
		"s3://kept/a/b.tar.gz" + query:       "s3://kept/a/b.tar.gz",
	} {
		var output bytes.Buffer
		require.NoError(t, makeArchive(t.Context(), archive.Source{Folder: run}, to, &output))
		require.Contains(t, output.String(), "BACKEND_TOKEN is a common word or a number, so it was redacted only next to the name of a secret")
		require.Contains(t, output.String(), "archive  "+location+", ")
		require.Contains(t, output.String(), "run      run-7: fail, 2023-11-14 22:13:20 UTC to 2023-11-14 23:13:20 UTC\ndata     no Prometheus data: no Prometheus address")
		file := location
		if to != "" && to[0] == 's' {
			file += query
		}
		output.Reset()
		require.NoError(t, openArchive(t.Context(), file, "", true, &output))
		require.Contains(t, output.String(), location)
	}
	err := makeArchive(t.Context(), archive.Source{Folder: run}, "s3://none/x"+query, &bytes.Buffer{})
	require.ErrorContains(t, err, "write s3://none/x/run-7.tar.gz: the bucket does not exist")
}

// The data of Prometheus is lost with its host. A later archive without data therefore does not replace one with data.
// A request that fails once is repeated.
func TestArchiveWithDataIsNotReplaced(t *testing.T) {
	query := startBucket(t)
	answer, err := proto.Marshal(&prompb.ReadResponse{Results: []*prompb.QueryResult{{Timeseries: []*prompb.TimeSeries{{
		Labels: []*prompb.Label{{Name: "__name__", Value: "up"}}, Samples: []*prompb.Sample{{Value: 1, Timestamp: 1700000000000}},
	}}}}})
	require.NoError(t, err)
	requests := 0
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests == 2 {
			http.Error(w, "try again", http.StatusBadGateway)
			return
		}
		_, _ = w.Write(snappy.Encode(nil, answer))
	}))
	t.Cleanup(prometheus.Close)
	run := runFolder(t)
	for _, to := range []string{"", "s3://kept/archives" + query} {
		requests = 0
		var output bytes.Buffer
		require.NoError(t, makeArchive(t.Context(), archive.Source{Folder: run, Prometheus: prometheus.URL}, to, &output))
		require.Contains(t, output.String(), "data     15 samples", "a failed request must be repeated")
		output.Reset()
		require.NoError(t, makeArchive(t.Context(), archive.Source{Folder: run, SkipReason: "its host is gone"}, to, &output))
		require.Contains(t, output.String(), "was kept")
		require.Contains(t, output.String(), "no Prometheus data this time: its host is gone")
		file := filepath.Join(filepath.Dir(run), "run-7.tar.gz")
		if to != "" {
			file = strings.Replace(to, "?", "/run-7.tar.gz?", 1)
		}
		output.Reset()
		require.NoError(t, openArchive(t.Context(), file, "", true, &output))
		require.Contains(t, output.String(), "data     15 samples")
	}
}

func TestRunsAreFoundByIDOrFolder(t *testing.T) {
	t.Parallel()
	run := runFolder(t)
	out := filepath.Dir(run)
	require.NoError(t, os.Symlink("run-7", filepath.Join(out, "latest")))
	want, err := filepath.EvalSymlinks(run)
	require.NoError(t, err)
	for _, name := range []string{run, "run-7", "latest", filepath.Join(out, "latest")} {
		require.Equal(t, want, folderOf(name, out), name)
	}
}

// Without Prometheus data, `soak open` starts no Prometheus. It keeps the unpacked files until Ctrl-C, which ends the
// command at any time.
func TestOpenOfAnArchiveWithoutData(t *testing.T) {
	run := runFolder(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	file := filepath.Join(t.TempDir(), "x.tar.gz")
	require.NoError(t, makeArchive(t.Context(), archive.Source{Folder: run}, file, &bytes.Buffer{}))
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	var unpacked []string
	out := &watchedOutput{text: "so nothing is started", onMatch: func() {
		unpacked, _ = filepath.Glob(filepath.Join(tmp, "soak-open-*", "run", "verdict.json"))
		stop()
	}}
	require.NoError(t, openArchive(ctx, file, "", false, out))
	require.Len(t, unpacked, 1)
	require.Contains(t, out.String(), "report   none; run `soak report ")
	require.ErrorIs(t, openArchive(ctx, file, "", false, &bytes.Buffer{}), context.Canceled)
	files, err := os.ReadDir(tmp)
	require.NoError(t, err)
	require.Empty(t, files, "files after `soak open`: %v", files)
}

// A watchedOutput calls onMatch once text has been written.
type watchedOutput struct {
	bytes.Buffer
	text    string
	onMatch func()
}

func (o *watchedOutput) Write(p []byte) (int, error) {
	n, err := o.Buffer.Write(p)
	if strings.Contains(o.String(), o.text) {
		o.onMatch()
	}
	return n, err
}
