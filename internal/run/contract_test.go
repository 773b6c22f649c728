package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ci"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A rig is one run of two fake runners under a driver.
type rig struct {
	config          Config
	k6              string
	folder          string // where each runner records its start
	service         *httptest.Server
	isDown          atomic.Bool // the service answers no request; its port stays in use, so no other test gets the port
	graceful, force context.Context
	stop, kill      func()
}

// A driverOfRig runs the runners of a rig, and returns the outcome and the record of the run.
type driverOfRig func(t *testing.T, r *rig) (outcome verdict.Outcome, record results.RunRecord, err error)

// withDrivers calls test for the named drivers, or for all drivers if no names are given. Each call has its own rig,
// whose runners have the given behavior.
func withDrivers(t *testing.T, behavior string, test func(*testing.T, *rig, driverOfRig), names ...string) {
	t.Helper()
	for name, drive := range drivers {
		if len(names) == 0 || slices.Contains(names, name) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, newRig(t, behavior), drive)
			})
		}
	}
}

var drivers = map[string]driverOfRig{
	"local": driveLocal,
	"local with a bucket": func(t *testing.T, r *rig) (verdict.Outcome, results.RunRecord, error) {
		t.Helper()
		r.config.Shards = newBucket(t)
		return driveLocal(t, r)
	},
	"parts": func(t *testing.T, r *rig) (outcome verdict.Outcome, record results.RunRecord, err error) {
		t.Helper()
		var parts sync.WaitGroup
		for k := 1; k <= 2; k++ {
			c := r.config
			c.Runner, c.Stdout = fmt.Sprintf("%d/2", k), &bytes.Buffer{}
			if k > 1 {
				c.At = nil // only one part has the actions
			}
			parts.Go(func() { _, _ = r.session(c).run(r.graceful, r.force) })
		}
		parts.Wait()
		outcome, err = Merge(filepath.Join(r.config.Out, "t"), "unused", 0, &bytes.Buffer{}, report.TerminalOptions{}, ci.Systems{})
		record = r.record(t, results.RunName(1))
		other := r.record(t, results.RunName(2))
		assert.Empty(t, other.ResourcesFrom, "only the first machine must query Prometheus")
		record.Problems, record.Failures = append(record.Problems, other.Problems...), append(record.Failures, other.Failures...)
		record.RunnerEnds = append(record.RunnerEnds, other.RunnerEnds...)
		return outcome, record, err
	},
	"kubernetes": func(t *testing.T, r *rig) (verdict.Outcome, results.RunRecord, error) {
		t.Helper()
		d, operator := r.inCluster(t)
		outcome, err := d.session.run(r.graceful, r.force)
		remaining, listErr := d.client.OtherRuns(t.Context(), namespace, d.Plan.BackendURL)
		require.NoError(t, listErr)
		assert.Empty(t, remaining, "the objects of the run must be removed")
		assert.Equal(t, d.created, operator.deleted)
		return outcome, r.record(t, results.RunFile), err
	},
}

func driveLocal(t *testing.T, r *rig) (verdict.Outcome, results.RunRecord, error) {
	t.Helper()
	outcome, err := r.session(r.config).run(r.graceful, r.force)
	return outcome, r.record(t, results.RunFile), err
}

func newRig(t *testing.T, behavior ...string) *rig {
	t.Helper()
	r := &rig{}
	r.service = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.isDown.Load() {
			panic(http.ErrAbortHandler)
		}
		silentStream(w, req)
	}))
	t.Cleanup(r.service.Close)
	r.k6, r.folder = fakeK6(t, behavior...)
	r.force, r.kill = context.WithCancel(t.Context())
	r.graceful, r.stop = context.WithCancel(r.force)
	t.Cleanup(r.kill)
	r.config = testConfig(r.service.URL)
	r.config.Out = t.TempDir()
	return r
}

// silentStream responds to requests of the noop protocol with a stream, and to all others with 404.
func silentStream(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/event/connect" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// session returns a session with complete settings, a fake k6 and a driver.
func (r *rig) session(c Config) *session {
	s := newSession(c)
	s.k6, s.script = r.k6, "connectionTest.js"
	if err := s.complete(time.Now()); err != nil {
		panic(err)
	}
	var err error
	if s.driver, err = newDriver(s); err != nil {
		panic(err)
	}
	return s
}

func (r *rig) dir() results.Dir { return results.Dir(filepath.Join(r.config.Out, "t")) }

func (r *rig) record(t *testing.T, name string) (record results.RunRecord) {
	t.Helper()
	if text, err := os.ReadFile(r.dir().Path(name)); err == nil {
		require.NoError(t, json.Unmarshal(text, &record))
	}
	return record
}

func (r *rig) verdict(t *testing.T) (v verdict.Verdict) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(readFile(t, r.dir().Path(results.VerdictFile))), &v))
	return v
}

func (r *rig) requireAbsent(t *testing.T, secrets ...string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(string(r.dir()), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range secrets {
			assert.NotContains(t, string(text), secret, path)
		}
		return err
	}))
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func (r *rig) release() { _ = os.WriteFile(filepath.Join(r.folder, ends), nil, 0o600) }

func (r *rig) awaitRunners(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return len(r.pids()) == 2 }, time.Minute, time.Millisecond)
}

func (r *rig) pids() (pids []int) {
	files, _ := filepath.Glob(filepath.Join(r.folder, "runs-*"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(string(text)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// With every driver, the same disturbance has the same outcome.
func TestDrivers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, behavior string
		disturbance    func(r *rig) // while the runners run
		want           verdict.Outcome
		wantText       string   // in the record of the session
		drivers        []string // nil: all
	}{
		{"all runners end normally", "", func(*rig) {}, verdict.Pass, `"resources_from"`, nil},
		{"a runner crashes", crashes, func(*rig) {}, verdict.Invalid, "exit code 3", []string{"local", "parts", "kubernetes"}},
		{"the first Ctrl-C makes the runners write their shards", holds, func(r *rig) { r.stop() }, verdict.Invalid, "was stopped by a signal before its end", nil},
		{"the second Ctrl-C ends everything", holds, func(r *rig) { r.kill() }, verdict.Invalid, "was stopped by a signal before its end", []string{"local", "kubernetes"}},
		{"the target no longer answers", "", func(r *rig) { r.isDown.Store(true) }, verdict.Fail, "no longer answers", []string{"local", "kubernetes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			withDrivers(t, c.behavior, func(t *testing.T, r *rig, drive driverOfRig) {
				var disturbance sync.WaitGroup
				disturbance.Go(func() {
					r.awaitRunners(t)
					c.disturbance(r)
					r.release()
				})
				outcome, record, err := drive(t, r)
				disturbance.Wait()
				require.NoError(t, err)
				text, err := json.Marshal(record)
				require.NoError(t, err)
				assert.Equal(t, c.want, outcome, "%s", text)
				assert.Contains(t, string(text), c.wantText)
				for _, pid := range r.pids() {
					assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "the runner with pid %d still runs", pid)
				}
				if c.behavior == holds && r.force.Err() == nil {
					shards, _ := filepath.Glob(r.dir().Path(results.ShardsDir + "/*"))
					assert.Len(t, shards, 2)
					assert.NotContains(t, string(text), "were not collected")
				}
			}, c.drivers...)
		})
	}
}

func suiteOf(name string) suite.Suite {
	suites := append(suite.All(), suite.Default())
	return suites[slices.IndexFunc(suites, func(s suite.Suite) bool { return s.Name == name })]
}

// The drivers pass the settings to a script that declares its load.
func TestDriversRunSuites(t *testing.T) {
	t.Parallel()
	withDrivers(t, ends, func(t *testing.T, r *rig, drive driverOfRig) {
		r.config.Suite, r.config.Plan, r.config.Settings = suiteOf("churn"), plan.Plan{TestID: "t", Runners: 2, BackendURL: r.service.URL}, map[string]string{"PROFILE": "smoke", "SECONDS": "7"}
		outcome, _, err := drive(t, r)
		require.NoError(t, err)
		v := r.verdict(t)
		assert.Equal(t, verdict.Pass, outcome, "%v", v.Reasons)
		assert.Equal(t, []string{"smoke", "7"}, []string{v.Suite.Profile, v.Suite.Parameters["SECONDS"]})
		assert.Equal(t, 4, v.Connections.Completed)
	}, "parts", "kubernetes")
}

// A suite with the plan of a soak runs its own script with that plan. The fake runners disconnect no streams.
func TestDriversRunSuitesWithASoakPlan(t *testing.T) {
	t.Parallel()
	withDrivers(t, ends, func(t *testing.T, r *rig, drive driverOfRig) {
		r.config.Suite = suiteOf("resume")
		r.config.Plan.Seconds, r.config.Plan.NoopInterval, r.config.Plan.CutsPerSecond = 30, 1, .5
		outcome, _, err := drive(t, r)
		require.NoError(t, err)
		v := r.verdict(t)
		assert.Equal(t, verdict.Invalid, outcome, "%v", v.Reasons)
		assert.Contains(t, strings.Join(v.Reasons, "\n"), "0 of 1 disconnect of kind half was made: too few streams")
		assert.True(t, v.Plan.Reconnect)
		assert.NotContains(t, strings.Join(v.Reasons, "\n"), "another plan")
	}, "local", "kubernetes")
}

// A soak whose process was killed leaves its run in the cluster. Another machine can follow the run to its end.
func TestAttach(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	d, operator := r.inCluster(t)
	r.startInCluster(t, d)
	r.awaitRunners(t)
	r.release()
	r.config.Out = t.TempDir()
	outcome, err := r.attachTo(d).run(r.graceful, r.force)
	require.NoError(t, err)
	assert.Equal(t, verdict.Pass, outcome, "%v", r.verdict(t).Reasons)
	assert.True(t, operator.deleted)
}

// attachTo returns a session that attaches to the run of a driver.
func (r *rig) attachTo(d *kubernetes) *session {
	s := newSession(Config{
		Local: r.config.Local, Plan: plan.Plan{TestID: "t"}, Stdout: &bytes.Buffer{},
		Kubernetes: Kubernetes{Namespace: namespace, StartTimeout: time.Minute},
	})
	s.driver = &attachedKubernetes{kubernetes{session: s, client: d.client, pollInterval: 5 * time.Millisecond}}
	return s
}

// The folder for results is checked before the trial, which may take a minute.
func TestUnwritableFolderIsRejectedBeforeTheTrial(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := filepath.Join(r.config.Out, "notes.txt")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	requests := 0
	r.config.Plan.BackendURL = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.WriteHeader(http.StatusNotFound)
	})
	for _, out := range []string{file, filepath.Join(file, "results"), os.DevNull} {
		r.config.Out = out
		_, _, err := driveLocal(t, r)
		require.EqualError(t, err, "make the results folder: mkdir "+filepath.Join(out, "t")+": not a directory; choose another folder with --out")
	}
	require.Zero(t, requests)
}

// The verdict requires run.json. The pipes of the runners are removed even if that file cannot be written.
func TestUnwrittenRecordNamesARemedy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	pipe := runners.PipePath(string(r.dir()), 1)
	var disturbance sync.WaitGroup
	disturbance.Go(func() {
		r.awaitRunners(t)
		assert.FileExists(t, pipe)
		assert.NoError(t, os.Mkdir(r.dir().Path(results.RunFile), 0o700)) // a file cannot replace a folder
		r.release()
	})
	_, err := r.session(r.config).run(r.graceful, r.force)
	disturbance.Wait()
	require.ErrorContains(t, err, "free disk space, and repeat the run")
	require.NoFileExists(t, pipe)
}

// A test id is chosen before long steps such as the trial of a description, so another run may create its folder first.
func TestRunsOfTheSameSecondHaveSeparateFolders(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.config.Plan.TestID = ""
	s := newSession(r.config)
	require.NoError(t, s.complete(time.Now()))
	first := s.Plan.TestID
	require.NoError(t, os.MkdirAll(filepath.Join(r.config.Out, first), 0o700))
	d := &local{session: s}
	require.NoError(t, d.createFolder(t.Context()))
	require.NotEqual(t, first, s.Plan.TestID)
	require.DirExists(t, filepath.Join(r.config.Out, s.Plan.TestID, results.ShardsDir))
	require.NoDirExists(t, filepath.Join(r.config.Out, first, results.ShardsDir))
}
