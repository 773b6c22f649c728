package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// newAppliedDeployment returns a deployment whose terraform prints the outputs in testdata/outputs.json.
func newAppliedDeployment(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{dir: t.TempDir(), program: "no program"}
	text, err := os.ReadFile("testdata/outputs.json")
	require.NoError(t, err)
	addTerraform(t, defaults, string(text))
	return d
}

// setReady sets the parameters of a deployment whose hosts are set up.
func (f *fakeAWS) setReady() {
	f.parameters = map[string]string{
		"/sse-soak/stack/secrets": "BACKEND_TOKEN=abc\nGRAFANA_PASSWORD=def\nPROMETHEUS_PASSWORD=ghi\n", "/sse-soak/stack/status": "ready i-1",
		"/sse-soak/runners/status-0": "ready i-2", "/sse-soak/runners/kubeconfig": "# i-2\n" + kubeconfig, "/sse-soak/end": setupPending,
	}
	f.hosts, f.launched, f.buckets = []string{"i-1", "i-2"}, time.Now(), []string{"sse-soak-123"}
}

// The real soak starts a run in the cluster of the runners, with the settings and secrets of terraform and AWS. The run
// ends early, because the cluster does not permit the secret of the run.
func TestSoak(t *testing.T) {
	stack, cluster := startStack(t), startCluster(t)
	f := startAWS(t)
	f.setReady()
	log, _ := addSessions(t, stack.Listener.Addr().String())
	t.Setenv("FAKE_AWS_CLUSTER", cluster.Listener.Addr().String())
	d := newAppliedDeployment(t)
	d.program = soakProgram(t)
	err := d.soak(context.Background(), []string{"--seconds", "60", "--testid", "aws-1", "--out", t.TempDir()})
	require.Equal(t, exitError(2), err, "the exit code must be the exit code of an invalid run")

	testRun := cluster.lastCreated("testruns")
	assert.Contains(t, testRun, `"sse-soak"`, "the TestRun must have the namespace of the overlay k3s")
	encoded := regexp.MustCompile(`"name":"` + plan.DocumentVariable + `","value":"([^"]+)"`).FindStringSubmatch(testRun)
	require.NotNil(t, encoded, testRun)
	text, err := base64.RawURLEncoding.DecodeString(encoded[1])
	require.NoError(t, err)
	var document plan.Document
	require.NoError(t, json.Unmarshal(text, &document))
	p := document.Plan
	assert.Equal(t, []any{"http://10.20.0.10", "http://10.20.0.10:7070", 1200, 15., 60}, []any{p.BackendURL, p.ControlURL, p.Connections, p.NoopInterval, p.Seconds})
	assert.Contains(t, testRun, "s3://sse-soak-123/shards/aws-1?region=eu-central-1")
	assert.Empty(t, cluster.lastCreated("deployments"), "the reference must be on the stack's host")
	require.Len(t, lines(t, log), 2)
	assert.Contains(t, lines(t, log)[1], "--target i-2 --document-name AWS-StartPortForwardingSession --parameters portNumber=6443,", "the Kubernetes API must be reached through a tunnel")
	_, port, _ := strings.Cut(lines(t, log)[0], "localPortNumber=")
	for _, path := range []string{"/healthz", "/prometheus/api/v1/query_range"} {
		assert.Contains(t, stack.targets(), "127.0.0.1:"+port+path, "this machine must reach the stack through the tunnel")
	}
	_, err = net.Dial("tcp", "127.0.0.1:"+port)
	require.Error(t, err, "the tunnel must be closed")
	assert.Contains(t, testRun, `"--out","experimental-prometheus-rw","--tag","testid=aws-1"`)
	assert.NotContains(t, testRun, "ghi")
	for name, value := range map[string]string{
		"BACKEND_TOKEN": "abc", "K6_PROMETHEUS_RW_SERVER_URL": "http://10.20.0.10/prometheus/api/v1/write",
		"K6_PROMETHEUS_RW_USERNAME": "prometheus", "K6_PROMETHEUS_RW_PASSWORD": "ghi",
	} {
		assert.Regexp(t, name+"\\W+"+regexp.QuoteMeta(value), cluster.lastCreated("secrets"))
	}
}

// attach follows an interrupted soak through a tunnel, and does not check the remaining time of the hosts.
func TestAttach(t *testing.T) {
	f := startAWS(t)
	m := newDeploymentWithRun(t, f)
	addSessions(t, startStack(t).Listener.Addr().String())
	f.hosts, f.launched = []string{"i-1"}, time.Now().Add(-175*time.Minute)
	require.NoError(t, m.attach(t.Context(), []string{"aws-1", "--out", t.TempDir()}))
	requests := lines(t, m.calls)
	assert.Regexp(t, `^attach aws-1 --out \S+ --backend-via 127\.0\.0\.1:\d+$`, requests[0])
	assert.Regexp(t, `^http://prometheus:ghi@127\.0\.0\.1:\d+/prometheus/`, requests[1])

	t.Setenv("AWS_SESSION_TOKEN", "token")
	s, err := m.appliedSite(t.Context())
	require.NoError(t, err)
	_, sentence := s.aws.checkCredentials(-soakOverhead).result(t.Context())
	assert.Contains(t, sentence, "the expiry of AWS_SESSION_TOKEN is unknown, but the run needs the token at its end")

	f.launched = time.Now().Add(-185 * time.Minute)
	require.ErrorContains(t, m.attach(t.Context(), []string{"aws-1"}), "the hosts have terminated")
}

func TestSoakEnvironment(t *testing.T) {
	s := site{
		settings: settings{Region: "eu-central-1"}, values: map[string]string{"/secrets": "BACKEND_TOKEN=abc\nPROMETHEUS_PASSWORD=g:i\n"},
		output: outputs{BackendURL: "http://10.20.0.10", ControlURL: "http://10.20.0.10:7070", Secrets: "/secrets"},
	}
	want := []string{"BACKEND_TOKEN=abc", "PROMETHEUS_PASSWORD=g:i", "AWS_REGION=eu-central-1", "PROMETHEUS_URL=http://prometheus:g%3Ai@127.0.0.1:9999/prometheus/"}
	assert.Equal(t, append(slices.Clone(want), "K6_PROMETHEUS_RW_SERVER_URL=http://10.20.0.10/prometheus/api/v1/write",
		"K6_PROMETHEUS_RW_USERNAME=prometheus", "K6_PROMETHEUS_RW_PASSWORD=g:i", "CONTROL_URL=http://10.20.0.10:7070"), s.environment("127.0.0.1:9999"))
	t.Setenv("K6_PROMETHEUS_RW_SERVER_URL", "")
	t.Setenv("CONTROL_URL", "http://10.20.0.99:7070")
	assert.Equal(t, want, s.environment("127.0.0.1:9999"), "variables of the user must take precedence")
}

// A soak whose settings, hosts or credentials are not sufficient must not start.
func TestSoakRequirements(t *testing.T) {
	f := startAWS(t)
	addSessions(t, startStack(t).Listener.Addr().String())
	d := newAppliedDeployment(t)
	launchedAgo := func(age time.Duration) func() { return func() { f.launched = time.Now().Add(-age) } } // hosts live for 3 hours
	expire := func() {
		t.Setenv("AWS_SESSION_TOKEN", "token")
		t.Setenv("AWS_CREDENTIAL_EXPIRATION", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}
	const startError = "no program" // the error of a soak that would have started
	for _, c := range []struct {
		prepare func()
		args    []string
		want    []string
	}{
		{func() {
			f.parameters["/sse-soak/stack/secrets"], f.parameters["/sse-soak/stack/status"] = setupPending, setupPending
		}, nil,
			[]string{"not all hosts are set up: the state of i-1 (/sse-soak/stack/status) is pending"}},
		{func() { f.parameters["/sse-soak/stack/status"] = "ready i-0" }, nil, []string{"not all hosts are set up"}}, // the status of a terminated host

		// Another service would receive the stack's token, and would be judged by the ledger and the CPU of the stack.
		{nil, []string{"--backend-url", "http://other"}, []string{"; use `bin/soak run --on k8s --backend-url http://other`"}},
		{nil, []string{"--seconds", "60", "--backend-url=http://other"}, []string{"; use `bin/soak run --on k8s --backend-url http://other`"}},

		// The stack is set up for a fixed number of streams.
		{nil, []string{"--connections", "5000"}, []string{"the stack of `make aws-up` has CONNECTIONS=1200 NOOP_INTERVAL=15, not CONNECTIONS=5000; change the stack of `make aws-up`, or omit CONNECTIONS=5000"}},
		{nil, []string{"--noop-interval=5"}, []string{", not NOOP_INTERVAL=5; change the stack"}},

		// The hosts must live until the verdict. A later end is taken into account, and a shorter soak fits.
		{launchedAgo(2 * time.Hour), []string{"--seconds", "3600"},
			[]string{"but the run takes 1h0m0s, plus up to 10m0s before and after it", "extend them with `bin/soak-aws extend --minutes 11`"}},
		{launchedAgo(2 * time.Hour), []string{"--seconds=1800"}, []string{startError}},
		{func() {
			launchedAgo(2 * time.Hour)()
			f.parameters["/sse-soak/end"] = time.Now().Add(90 * time.Minute).UTC().Format(time.RFC3339)
		}, nil, []string{startError}},
		{launchedAgo(4 * time.Hour), nil, []string{"run `make aws-up` for new ones"}},

		// The shards are read at the end of a soak, so the credentials must be valid until then.
		{expire, nil, []string{"before the verdict of a run of 1h0m0s; log in for longer"}},
		{expire, []string{"--seconds", "1800"}, []string{startError}},
	} {
		f.setReady()
		if c.prepare != nil {
			c.prepare()
		}
		for _, part := range c.want {
			require.ErrorContains(t, d.soak(t.Context(), c.args), part)
		}
	}
}

func TestExtend(t *testing.T) {
	f := startAWS(t)
	f.setReady()
	f.launched = time.Now().Truncate(time.Second)
	schedule := func(name string) map[string]any {
		return map[string]any{
			"Arn": "arn", "CreationDate": 1.7e9, "LastModificationDate": 1.7e9, "Name": name, "GroupName": "sse-soak", "State": "ENABLED",
			"FlexibleTimeWindow": map[string]any{"Mode": "OFF"}, "ScheduleExpression": "at(2020-01-01T00:00:00)",
			"ScheduleExpressionTimezone": "UTC", "Target": map[string]any{"Arn": "terminate", "Input": "{}", "RoleArn": "arn:aws:iam::123456789012:role/end-of-hosts"},
		}
	}
	f.schedules = map[string]map[string]any{"end-sse-soak-stack": schedule("end-sse-soak-stack"), "end-sse-soak-runners": schedule("end-sse-soak-runners")}
	d := newAppliedDeployment(t)
	require.NoError(t, d.extend(context.Background(), 120))
	want := f.launched.Add(5 * time.Hour).UTC()
	assert.Equal(t, want.Format(time.RFC3339), f.parameters["/sse-soak/end"])
	for name, s := range f.schedules {
		assert.Equal(t, "at("+want.Add(15*time.Minute).Format("2006-01-02T15:04:05")+")", s["ScheduleExpression"], name)
		assert.Equal(t, map[string]any{"Arn": "terminate", "Input": "{}", "RoleArn": "arn:aws:iam::123456789012:role/end-of-hosts"}, s["Target"], "the other properties must not change")
	}

	// Another extension is added to the current end, up to a limit.
	require.NoError(t, d.extend(context.Background(), 60))
	assert.Equal(t, want.Add(time.Hour).Format(time.RFC3339), f.parameters["/sse-soak/end"])
	require.ErrorContains(t, d.extend(context.Background(), -3), "--minutes must be positive, got -3")
	require.ErrorContains(t, d.extend(context.Background(), 24*60), "the time until the end of the hosts must be at most 24h0m0s, got ")

	// If the schedules cannot be moved, the hosts must not get a later end, because the schedules would terminate them
	// during a soak.
	f.schedules = nil
	require.ErrorContains(t, d.extend(context.Background(), 60), "the hosts still end at")
	assert.Equal(t, want.Add(time.Hour).Format(time.RFC3339), f.parameters["/sse-soak/end"])
}
