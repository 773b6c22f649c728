package run

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A session follows the other runners if one cannot be replaced. Otherwise no process would judge or stop them.
func TestAttachFollowsOtherRunnersIfAReplacementDoesNotStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.config.Plan.Runners = 2
	d := &attachedLocal{local: local{session: r.session(r.config)}, group: new(runners.Group)}
	var err error
	d.dir, err = results.Create(r.config.Out, "t")
	require.NoError(t, err)
	d.location = d.dir.Path(results.ShardsDir)
	for index := 1; index <= 2; index++ {
		last := shardOf(d.Plan, index)
		last.Runner.State, last.Runner.StartedUS = shard.Running, time.Now().UnixMicro()
		d.unfinished = append(d.unfinished, last)
	}
	require.NoError(t, d.checkTrust(t.Context()))
	require.NoError(t, d.prepare(t.Context()))
	require.NoError(t, os.Mkdir(d.dir.Path("k6-runner-2.log"), 0o700)) // runner 2 cannot open its log
	group, err := d.start(t.Context(), round{dir: d.dir, shards: d.location})
	require.NoError(t, err)
	require.Len(t, d.record.Warnings, 1)
	require.Contains(t, d.record.Warnings[0], "k6-runner-2.log")
	require.NotContains(t, d.record.Warnings[0], "make build", "the error must not ask for a k6 that exists")
	r.release()
	require.NoError(t, group.Wait(r.graceful, r.force))
	shards, err := filepath.Glob(filepath.Join(d.location, "*"))
	require.NoError(t, err)
	require.Len(t, shards, 1, "runner 1 must run to its end")
}

func TestAttachChecksLocalSettings(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(c *Config){
		"--ca: open missing.pem":          func(c *Config) { c.CA = "missing.pem" },
		"--live must be HOST:PORT":        func(c *Config) { c.Live = "nowhere" },
		"--progress must be line or full": func(c *Config) { c.Progress = "long" },
	} {
		c := Config{Plan: plan.Plan{TestID: "t"}, Local: plan.Local{Out: t.TempDir()}, Stdout: io.Discard}
		require.NoError(t, os.Mkdir(filepath.Join(c.Out, "t"), 0o700))
		require.NoError(t, os.WriteFile(runners.PipePath(filepath.Join(c.Out, "t"), 1), nil, 0o600)) // the run is on this machine
		edit(&c)
		_, err := Attach(t.Context(), c)
		require.ErrorAs(t, err, new(UsageError))
		require.ErrorContains(t, err, want)
	}
}

// Without the --ca of the run, the check of the target after the run would fail a run whose runners lost nothing.
func TestAttachRequiresTrustInTheTarget(t *testing.T) {
	t.Parallel()
	service := httptest.NewTLSServer(http.HandlerFunc(silentStream))
	t.Cleanup(service.Close)
	d := &attachedLocal{local: local{session: &session{Config: Config{Plan: plan.Plan{BackendURL: service.URL}}}}}
	err := d.checkTrust(t.Context())
	require.ErrorAs(t, err, new(UsageError))
	require.ErrorContains(t, err, "pass --ca FILE")
	service.Close()
	require.NoError(t, d.checkTrust(t.Context()), "the service may fail during the run")
}

// The run most likely ended on this machine, so the error starts with that remedy and not with the missing cluster.
func TestAttachToAnEndedRunNamesMergeFirst(t *testing.T) {
	t.Parallel()
	d, err := results.Create(t.TempDir(), "t")
	require.NoError(t, err)
	require.NoError(t, d.WriteJSON(results.PlanFile, plan.Plan{}))
	require.NoError(t, d.WriteJSON(results.RunFile, results.RunRecord{}))
	err = notFoundError(d, cluster.ErrNoRun)
	require.ErrorIs(t, err, cluster.ErrNoRun)
	require.Regexp(t, "^attach: if .* ran on this machine, it has ended; judge it with `soak merge .*` \\(on Kubernetes: ", err.Error())
}
