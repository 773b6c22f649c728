package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
)

const (
	intervalService   = `{"name":"mine","connect":{"url":"{base}/{topic}"},"message":{"every":2}}`
	heartbeatService  = `{"name":"mine","connect":{"url":"{base}/{topic}"},"heartbeat":{"comment":true,"every":4},"message":"unchecked"}`
	minimalService    = `{"name":"mine","connect":{"url":"{base}/{topic}"},"message":"unchecked"}`
	endingService     = `{"name":"mine","connect":{"url":"{base}/{topic}"},"message":{"every":2},"end":{"by":"server","lifetime":600}}`
	publishingService = `{"name":"mine","connect":{"url":"{base}/{topic}"},"heartbeat":{"comment":true,"every":40},"message":{"seq":"json:$.seq"},` +
		`"publish":{"url":"{base}/{topic}","body":"{\"seq\":{seq}}"}}`
)

// newDescribedRig returns a rig whose script loads the description in text.
func newDescribedRig(t *testing.T, text string) *rig {
	t.Helper()
	r := newRig(t)
	r.describe(t, text)
	return r
}

func (r *rig) describe(t *testing.T, text string) {
	t.Helper()
	r.config.Plan.Service = "mine"
	require.NoError(t, os.WriteFile(filepath.Join(r.folder, description), []byte(text), 0o600))
}

func TestDescriptionCompletesThePlan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		edit       func(p *plan.Plan)
		interval   float64
		reconnect  bool
		announced  string
		warnings   int
	}{
		{"messages at an interval", intervalService, func(*plan.Plan) {}, 2, false, "a message every 2 s", 0},
		{"heartbeats alone", heartbeatService, func(*plan.Plan) {}, 4, false, "messages not checked", 0},
		{"no interval", minimalService, func(p *plan.Plan) { p.NoopInterval = 3 }, 3, false, "messages not checked", 0},
		{"a publisher", publishingService, func(p *plan.Plan) { p.Topics, p.PublishRate = 3, 2 }, 1.5, false, "a message every 1.5 s on each stream, published at 2/s to 3 topics", 1}, // without a marker
		{"a publisher and MAX_HIDDEN", publishingService, func(p *plan.Plan) { p.Topics, p.PublishRate, p.MaxHidden = 3, 2, 1000 }, 1.5, false, "a message every 1.5 s on each stream, published at 2/s to 3 topics", 0},
		{"streams that end by themselves", endingService, func(*plan.Plan) {}, 2, true, "a message every 2 s", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newDescribedRig(t, c.text)
			c.edit(&r.config.Plan)
			s := r.session(r.config)
			require.NoError(t, s.inspect(t.Context()))
			require.InDelta(t, c.interval, s.Plan.NoopInterval, 0)
			require.InDelta(t, 15, s.Plan.EndTimeoutS, 0)
			require.Equal(t, c.reconnect, s.Plan.Reconnect)
			require.Equal(t, "mine", s.desc.Name)
			require.Positive(t, s.needs.Duration)
			require.Equal(t, c.announced, s.intervalText())
			require.Len(t, s.record.Warnings, c.warnings)
		})
	}
}

func TestUnsuitableServiceIsAUsageError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		edit       func(r *rig)
		want       string
	}{
		{"rejected by the script", intervalService, func(r *rig) {
			_ = os.WriteFile(filepath.Join(r.folder, refuses), []byte("the description of mine has no publish"), 0o600)
		}, "the description of mine has no publish"},
		{"a script without services", intervalService, func(r *rig) { _ = os.Remove(filepath.Join(r.folder, description)) }, "connectionTest.js does not load it"},
		{"an incomplete description", `{"name":"mine"}`, func(*rig) {}, "the description of mine: connect"},
		{"too short for the heartbeats", strings.Replace(heartbeatService, `"every":4`, `"every":40`, 1), func(*rig) {}, "a stream must receive at least two heartbeats, got one every 40 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newDescribedRig(t, c.text)
			c.edit(r)
			err := r.session(r.config).inspect(t.Context())
			require.ErrorContains(t, err, c.want)
			require.ErrorAs(t, err, &UsageError{})
		})
	}
}

// The default of NOOP_INTERVAL would be too long for a run of 30 s.
func TestPublishedSoakIsComplete(t *testing.T) {
	t.Parallel()
	p := plan.Default()
	p.Service, p.BackendURL, p.Connections, p.Seconds, p.Topics, p.PublishRate, p.ConnectionsPerVU = "../nchan.js", "http://h", 100, 30, 5, 2, 0
	s := newSession(Config{Suite: suite.Default(), Plan: p, Local: plan.DefaultLocal(), Backends: 1})
	require.NoError(t, s.complete(time.Now()))
	require.InDelta(t, 2.5, s.Plan.NoopInterval, 0)
	require.True(t, filepath.IsAbs(s.Plan.Service))
	require.Regexp(t, "^"+s.Plan.TestID+"-[0-9a-f]{6}$", s.Plan.Marker)
	require.Zero(t, s.interval, "only our backend must have the interval of the plan")

	p.TestID = "t"
	part := newSession(Config{Suite: suite.Default(), Plan: p, Local: plan.DefaultLocal(), Backends: 1, Runner: "2/2"})
	require.NoError(t, part.complete(time.Now()))
	require.Equal(t, "t", part.Plan.Marker, "all machines must have the same marker")
}

func TestNoopSuiteRejectsOtherServices(t *testing.T) {
	for _, kind := range suite.All() {
		if kind.Plan.BySettings { // a suite with the plan of a soak accepts any service
			continue
		}
		for _, service := range []string{"nchan", "noop"} {
			t.Setenv("SERVICE", service)
			err := newSession(Config{Suite: kind, Plan: plan.Plan{Runners: 1}, Local: plan.DefaultLocal(), Backends: 1}).complete(time.Now())
			if kind.Target.Streams && service == "nchan" {
				require.ErrorContains(t, err, "SERVICE must be noop for "+kind.Name)
			} else {
				require.NoError(t, err)
			}
		}
	}
}

// Except for /healthz, a described service gets no request for paths that only our backend has.
func TestDriversRunADescribedService(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]map[string]bool{
		"local":      {"/healthz": true, "/soak-topic-0": true}, // the trial
		"kubernetes": {"/healthz": true},                        // this machine may be unable to reach a service that pods reach
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newDescribedRig(t, intervalService)
			r.release()
			var mu sync.Mutex
			requests := map[string]bool{}
			r.config.Plan.BackendURL = serve(t, func(w http.ResponseWriter, req *http.Request) {
				mu.Lock()
				requests[req.URL.Path] = true
				mu.Unlock()
				if req.URL.Path == "/healthz" {
					fmt.Fprint(w, `{"noop_interval_s": 15, "version": "of something else"}`)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "data: x\n\n")
				_ = http.NewResponseController(w).Flush()
				<-req.Context().Done()
			})
			_, record, err := drivers[name](t, r)
			require.NoError(t, err)
			assert.Empty(t, record.Backend)
			mu.Lock()
			assert.Equal(t, want, requests)
			mu.Unlock()
			var p plan.Plan
			require.NoError(t, json.Unmarshal([]byte(readFile(t, r.dir().Path(results.PlanFile))), &p))
			assert.Equal(t, "mine", p.Service)
			assert.InDelta(t, 2, p.NoopInterval, 0)
			shards, err := filepath.Glob(r.dir().Path(results.ShardsDir + "/*"))
			require.NoError(t, err)
			require.Len(t, shards, 2)
			for _, file := range shards {
				s, err := shard.Read(strings.NewReader(readFile(t, file)))
				require.NoError(t, err)
				assert.Equal(t, []string{"mine", p.Marker}, []string{s.Plan.Service, s.Plan.Marker}, "the settings must reach the runner")
			}
			output := r.config.Stdout.(*bytes.Buffer).String()
			assert.Contains(t, output, "for 15 s, a message every 2 s, 2 runners\n")
			assert.Contains(t, output, "\ntarget mine at http://127.0.0.1:")
		})
	}
}

func TestPodsGetTheTokensOfAService(t *testing.T) {
	t.Setenv("PUBLISH_TOKEN", "psst")
	t.Setenv("SUBSCRIBE_TOKEN", "")
	s := &session{isModule: true}
	require.Equal(t, map[string]string{"BACKEND_TOKEN": "hush", "PUBLISH_TOKEN": "psst"}, s.tokens("hush"))
	require.Empty(t, new(session).tokens(""), "without a module the pods must get no other token")
}

// Each runner may have its own URL. A wrong URL is found before the load. A run rejects a backend with another
// interval.
func TestTryOpensAStreamOfEachTarget(t *testing.T) {
	t.Parallel()
	good := serve(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/healthz" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"noop_interval_s":1}`))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
	})
	bad := serve(t, http.NotFound)
	for urls, want := range map[string]string{good: "", good + "," + good: "", good + "," + bad: bad + "/event/connect?… answered 404 Not Found"} {
		err := Try(t.Context(), testConfig(urls))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "run `soak init "+bad+"`")
	}
	c := testConfig(good)
	c.Plan.NoopInterval = 5
	require.ErrorContains(t, Try(t.Context(), c), "the backend sends a noop every 1s, but the plan has 5s")
}

// token() may log in, so a stream may send a token that is not in the environment.
func TestServiceWithItsOwnToken(t *testing.T) {
	t.Parallel()
	r := newDescribedRig(t, `{"name":"mine","token":true,"connect":{"url":"{base}/{topic}?t={token}"},"message":{"every":2}},"customToken":true`) // customToken is a field next to service
	r.config.Plan.BackendURL = serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	s := r.session(r.config)
	require.NoError(t, s.inspect(t.Context()))
	require.NoError(t, s.tryService(t.Context()))
	require.Contains(t, s.record.Warnings, "token() does not return SUBSCRIBE_TOKEN: no stream was opened before the load")
}

// The service answers only requests over HTTP/2 that accept gzip.
func TestTrialOfAFiniteServiceUsesTheSettingsOfTheSuite(t *testing.T) {
	t.Parallel()
	r := newDescribedRig(t, `{"name":"mine","connect":{"url":"{base}/{topic}"},"message":{"per":"request"},"end":{"by":"event","done":{"data":"end"}}}`)
	r.config.Suite, r.config.Settings = suiteOf("finite"), map[string]string{"ACCEPT_ENCODING": "gzip", "HTTP_VERSION": "2"}
	service := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/healthz" && (req.Header.Get("Accept-Encoding") != "gzip" || req.ProtoMajor != 2) {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: x\n\ndata: end\n\n")
	}))
	service.Config.Protocols = new(http.Protocols)
	service.Config.Protocols.SetHTTP1(true)
	service.Config.Protocols.SetUnencryptedHTTP2(true)
	service.Start()
	t.Cleanup(service.Close)
	r.config.Plan.BackendURL = service.URL
	s := r.session(r.config)
	require.NoError(t, s.inspect(t.Context()))
	require.NoError(t, s.tryService(t.Context()))
}
