package run

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
	"github.com/sse-soak/sse-soak/test/terminal"
)

// watchPage calls Watch for a location, and returns the page, the output and the result of Watch.
func watchPage(t *testing.T, location string) (page func() string, out *terminal.Output, done chan error) {
	t.Helper()
	out, done = new(terminal.Output), make(chan error, 1)
	go func() {
		done <- Watch(t.Context(), WatchConfig{Location: location, Stdout: out, Interval: 20 * time.Millisecond})
	}()
	var address string
	require.Eventually(t, func() bool {
		if match := regexp.MustCompile(`live +(http://\S+)`).FindStringSubmatch(out.String()); match != nil {
			address = match[1]
		}
		return address != ""
	}, time.Minute, 5*time.Millisecond)
	return func() string {
		resp, err := http.Get(address)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return string(text)
	}, out, done
}

func awaitText(t *testing.T, page func() string, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(page(), text) }, time.Minute, 10*time.Millisecond, text)
}

func writeShard(t *testing.T, location string, p plan.Plan, index int, state shard.RunState) {
	t.Helper()
	s := shardOf(p, index)
	s.Runner.State = state
	require.NoError(t, put(t.Context(), location, s))
}

func watchedPlan() plan.Plan {
	p := plan.Default()
	p.TestID, p.Prefix, p.Connections, p.ConnectionsPerVU, p.Seconds, p.NoopInterval, p.Runners = "t", "d-", 4, 1, 20, 1, 2
	return p
}

func TestWatchARunInAFolder(t *testing.T) {
	t.Parallel()
	dir, err := results.Create(t.TempDir(), "t")
	require.NoError(t, err)
	page, out, done := watchPage(t, string(dir))
	awaitText(t, page, "WAITING")
	writeShard(t, dir.Path(results.ShardsDir), watchedPlan(), 1, shard.Running)
	awaitText(t, page, "1 runner of the plan has not written data yet")
	writeShard(t, dir.Path(results.ShardsDir), watchedPlan(), 1, shard.Finished)
	writeShard(t, dir.Path(results.ShardsDir), watchedPlan(), 2, shard.Finished)
	awaitText(t, page, "all runners have ended; if no `soak run` waits for them, write")
	before, err := os.ReadDir(string(dir))
	require.NoError(t, err)
	require.Len(t, before, 1, "Watch must not write to the location")
	require.NoError(t, os.WriteFile(dir.Path(results.PageFile), []byte("the report"), 0o600))
	require.NoError(t, <-done)
	require.Contains(t, out.String(), "the run is over: "+dir.Path(results.PageFile))

	var output bytes.Buffer
	require.NoError(t, Watch(t.Context(), WatchConfig{Location: string(dir), Stdout: &output}))
	require.Equal(t, "the run is over: "+dir.Path(results.PageFile)+"\n", output.String(), "a finished run must have no page")
}

// A run in a bucket ends with the final shards of all runners. The last checkpoint of a killed runner never becomes a
// final shard, so the record of the run ends it, too.
func TestWatchARunInABucket(t *testing.T) {
	t.Parallel()
	for name, isKilled := range map[string]bool{"all runners end": false, "a runner is killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			location := store.Join(newBucket(t), "t")
			page, out, done := watchPage(t, location)
			awaitText(t, page, "WAITING")
			writeShard(t, location, watchedPlan(), 1, shard.Running)
			awaitText(t, page, "1 runner of the plan has not written data yet")
			writeShard(t, location, watchedPlan(), 1, shard.Finished)
			if isKilled {
				writeShard(t, location, watchedPlan(), 2, shard.Running)
				bucket, err := store.Open(t.Context(), location)
				require.NoError(t, err)
				defer bucket.Close()
				require.NoError(t, bucket.Put(t.Context(), results.RunFile, []byte("{}")))
			} else {
				writeShard(t, location, watchedPlan(), 2, shard.Finished)
			}
			require.NoError(t, <-done)
			require.Contains(t, out.String(), "soak merge")
			require.Contains(t, out.String(), location+" is empty; check the prefix", "a wrong prefix must be reported")
		})
	}
}

func TestUnwatchableRunsAreReported(t *testing.T) {
	t.Parallel()
	err := Watch(t.Context(), WatchConfig{Location: filepath.Join(t.TempDir(), "none"), Stdout: io.Discard})
	require.ErrorAs(t, err, &UsageError{})
	require.ErrorContains(t, err, "is not a folder; pass the folder of a run")
}
