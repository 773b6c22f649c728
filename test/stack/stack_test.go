//go:build stack

package stack

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/grafana"
)

func TestStack(t *testing.T) {
	alerts := make(chan string, 100)
	webhook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		alerts <- string(body)
	}))
	t.Cleanup(webhook.Close)
	s := start(t, map[string]string{
		"CONNECTIONS": "500", "NOOP_INTERVAL": "1", "COMPOSE_PROFILES": "alerts", "ALERT_WEBHOOK_URL": webhook.URL,
	})
	s.requirePrivatePaths()
	s.requireConfinement()
	s.requireHiddenDocker()
	s.requireVersion()
	s.requireScrape(1)
	s.requirePassingSoak()
	s.requireContainers()
	s.requireK6Metrics()
	s.requireJSONLogs()
	s.restartBackend()
	s.requireAlert("BackendRestarted", alerts)
	s.extendToCluster()
	s.requireFailureReason()
}

// requireAlert asserts that Alertmanager sends an alert to the webhook.
func (s *stack) requireAlert(alert string, alerts chan string) {
	for {
		select {
		case message := <-alerts:
			if strings.Contains(message, alert) {
				return
			}
		case <-time.After(time.Minute):
			require.Failf(s.t, "the webhook must receive the alert", alert)
		}
	}
}

// requirePrivatePaths asserts that private paths require authentication, and that only one port is reachable from
// outside.
func (s *stack) requirePrivatePaths() {
	for _, path := range []string{"/metrics", "/event/ledger", "/fault", "/nginx-status", "/backend-1/metrics", "/prometheus/metrics"} {
		status, body := s.request(http.MethodGet, path, "")
		require.Equal(s.t, http.StatusUnauthorized, status, "%s: %s", path, body)
	}
	for _, path := range []string{"/metrics", "/event/ledger"} {
		status, body := s.request(http.MethodGet, path, s.env["BACKEND_TOKEN"])
		require.Equal(s.t, http.StatusOK, status, "%s: %s", path, body)
	}
	status, body := s.request(http.MethodDelete, "/event/forcedisconnect?id=unknown", "")
	require.Equal(s.t, http.StatusUnauthorized, status, "OPEN_DISCONNECT must be off by default: %s", body)
	host := hostAddress(s.t)
	for _, port := range internalPorts {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), time.Second)
		if err == nil {
			_ = conn.Close()
		}
		require.Error(s.t, err, "port %s must not be reachable from outside", port)
	}
	if s.grafana {
		status, body := s.request(http.MethodGet, "/grafana/api/datasources/uid/prometheus", "")
		require.Equal(s.t, http.StatusUnauthorized, status, body)
		status, body = s.request(http.MethodGet, "/grafana/api/datasources/uid/prometheus/health", "admin:"+s.env["GRAFANA_PASSWORD"])
		require.Equal(s.t, http.StatusOK, status, body)
	}
}

// requireConfinement asserts that Docker applies the limits of compose.yaml to every service.
func (s *stack) requireConfinement() {
	names := strings.Fields(run(s.t, time.Minute, "docker", append([]string{"ps", "-a", "--format", "{{.Names}}"}, projectFilter...)...))
	require.GreaterOrEqual(s.t, len(names), 7)
	var containers []struct {
		Name       string
		HostConfig struct {
			Memory         int64
			ReadonlyRootfs bool
			CapDrop        []string
			SecurityOpt    []string
			RestartPolicy  struct{ Name string }
			LogConfig      struct{ Config map[string]string }
			Ulimits        []struct{ Name string }
			Sysctls        map[string]string
		}
	}
	text := run(s.t, time.Minute, "docker", append([]string{"inspect"}, names...)...)
	require.NoError(s.t, json.Unmarshal([]byte(text), &containers))
	for _, c := range containers {
		name, limits := strings.TrimPrefix(c.Name, "/"+project+"-"), c.HostConfig
		require.True(s.t, limits.ReadonlyRootfs, "%s: the root file system must be read-only", name)
		require.Positive(s.t, limits.Memory, "%s: the memory must be limited", name)
		require.Equal(s.t, []string{"ALL"}, limits.CapDrop, name)
		require.Contains(s.t, limits.SecurityOpt, "no-new-privileges:true", name)
		require.Equal(s.t, map[string]string{"max-size": "20m", "max-file": "5"}, limits.LogConfig.Config, "%s: logs must be rotated", name)
		if !strings.HasPrefix(name, "nginxconf") {
			require.Equal(s.t, "unless-stopped", limits.RestartPolicy.Name, name)
		}
		if strings.HasPrefix(name, "nginx-1") || strings.HasPrefix(name, "backend") {
			require.NotEmpty(s.t, limits.Ulimits, "%s: the limit on open files must be set", name)
		}
		if strings.HasPrefix(name, "backend") {
			require.Equal(s.t, "8192", limits.Sysctls["net.core.somaxconn"], name)
		}
	}
}

// requireHiddenDocker asserts that cAdvisor can reach only the sockets of docker-reader. The sockets of Docker and
// containerd would give cAdvisor root access to the host.
func (s *stack) requireHiddenDocker() {
	const find = "find / -xdev -type s; find /rootfs/run /rootfs/var/run/ /var/run/ -type s; find /run -type s"
	output := run(s.t, time.Minute, "docker", "exec", project+"-cadvisor-1", "sh", "-c", "("+find+") 2>/dev/null | xargs -n 1 readlink -f | sort -u")
	require.Equal(s.t, "/run/docker-reader/containerd.sock\n/run/docker-reader/docker.sock\n", output)
}

func (s *stack) requireVersion() {
	status, body := s.request(http.MethodGet, "/healthz", "")
	require.Equal(s.t, http.StatusOK, status)
	require.Contains(s.t, body, `"version":"`+version+`"`)
}

// requireScrape asserts that Prometheus scrapes all jobs, with the given number of backends.
func (s *stack) requireScrape(backends int) {
	jobs := map[string]int{"backend": backends, "nginx": 1, "node": 1, "cadvisor": 1, "prometheus": 1}
	if strings.Contains(s.env["COMPOSE_PROFILES"], "alerts") {
		jobs["alertmanager"] = 1
	}
	if s.grafana {
		jobs["grafana"] = 1
	}
	for job, n := range jobs {
		await(s.t, "Prometheus must scrape "+job, func() bool { return s.value(fmt.Sprintf(`count(up{job=%q} == 1)`, job)) == fmt.Sprint(n) })
	}
	for _, expr := range []string{
		`backend_max_connections{instance="backend-1"}`, `nginx_connections_active`, `node_netstat_TcpExt_ListenOverflows`,
		`node_tcp_connection_states{state="established"}`, `instance:backend_fds:ratio{instance="backend-1"}`,
		`count(container_memory_working_set_bytes{name=~".*backend-1.*"})`,
	} {
		await(s.t, "Prometheus must have data for "+expr, func() bool { return s.value(expr) != "" })
	}
}

// remoteWrite adds the variables that make k6 write to the Prometheus of the stack, through nginx.
func (s *stack) remoteWrite(env ...string) []string {
	return append(env, "K6_PROMETHEUS_RW_SERVER_URL="+s.url+"/prometheus/api/v1/write", "K6_PROMETHEUS_RW_USERNAME=prometheus",
		"K6_PROMETHEUS_RW_PASSWORD="+s.env["PROMETHEUS_PASSWORD"])
}

// requirePassingSoak runs 200 streams of two runners for 15 s through the public port.
func (s *stack) requirePassingSoak() {
	out := s.t.TempDir()
	output := runWith(s.t, 3*time.Minute, s.remoteWrite("BACKEND_TOKEN="+s.env["BACKEND_TOKEN"]), "bin/soak", "run", "--backend-url", s.url,
		"--connections", "200", "--seconds", "15", "--noop-interval", "1", "--runners", "2", "--out", out, "--testid", "stack")
	s.t.Log(output)
	b, err := os.ReadFile(results.Dir(filepath.Join(out, "stack")).Path(results.VerdictFile))
	require.NoError(s.t, err)
	var v verdict.Verdict
	require.NoError(s.t, json.Unmarshal(b, &v))
	require.Zero(s.t, v.Verdict.ExitCode(), output)
	require.NotZero(s.t, v.Server.Sent, "soak must read the ledger of the backend")
	require.True(s.t, v.Server.Agrees, "the ledger of the backend must match: %+v", v.Server)
	require.NotEmpty(s.t, s.value(`max_over_time(backend_streams_open{instance="backend-1"}[5m]) >= 200`), "Prometheus must report the streams")
	for expr, want := range map[string]string{
		`sum(k6_soak_noops_total{testid="stack"})`: fmt.Sprint(v.Messages.Received), `max(k6_soak_streams_planned{testid="stack"})`: "200",
		`sum(k6_soak_streams_completed{testid="stack"})`: "200", `sum(k6_soak_noops_missed{testid="stack"})`: "0",
	} {
		await(s.t, expr+" must be "+want, func() bool { return s.value(expr) == want })
	}
}

// requireContainers asserts that the panels about containers have data. test/dashboards has no containers.
func (s *stack) requireContainers() {
	now, queries := time.Now(), 0
	v := grafana.View{
		Prometheus: "http://127.0.0.1:9090/prometheus", Variables: map[string]string{"instance": ".*"},
		Range: prometheus.Range{Start: now.Add(-time.Minute), End: now, Step: 5 * time.Second},
	}
	for _, board := range grafana.Boards(s.t, root) {
		for _, panel := range board.Panels {
			for _, q := range panel.Targets {
				if strings.Contains(q.Expr, "container_") {
					got, err := v.Ask(context.Background(), q.Expr)
					require.NoError(s.t, err)
					require.NotEmpty(s.t, got, "%s/%s: %s", board.Name, panel.Title, q.Expr)
					queries++
				}
			}
		}
	}
	require.Positive(s.t, queries)
}

// requireK6Metrics runs k6 without soak, and asserts that Prometheus receives the metrics of k6.
func (s *stack) requireK6Metrics() {
	runWith(s.t, 2*time.Minute, s.remoteWrite("BACKEND_TOKEN="+s.env["BACKEND_TOKEN"], "K6_PROMETHEUS_RW_TREND_STATS=p(50),p(99),max", "K6_NO_USAGE_REPORT=true"), "bin/k6", "run", "--quiet", "--out", "experimental-prometheus-rw", "--tag", "testid=laptop", "load-tests/sse/connectionTest.js",
		"--vus", "5", "--iterations", "5", "--duration", "60s", "--env", "BACKEND_URL="+s.url, "--env", "NOOP_INTERVAL=1",
		"--env", "SECONDS=15", "--env", "PREFIX=laptop-a-")
	await(s.t, "Prometheus must have the metrics of k6", func() bool { return s.value(`sum(k6_sse_connection_opened_total{testid="laptop"})`) == "5" })
	require.Equal(s.t, "1", s.value(`min(k6_checks_rate{testid="laptop"})`))
	require.NotEmpty(s.t, s.value(`k6_sse_connecting_p99{testid="laptop"}`))
	require.NotEmpty(s.t, s.value(`testid:k6_streams:open{testid="laptop"}`), "the recording rules must include the run")
}

// requireJSONLogs asserts that nginx logs no error, and writes one line of JSON for each stream.
func (s *stack) requireJSONLogs() {
	await(s.t, "the access log must contain the streams of both runs", func() bool {
		streams := 0
		for _, line := range strings.Split(run(s.t, time.Minute, "docker", "logs", project+"-nginx-1"), "\n") {
			require.NotRegexp(s.t, `\[(alert|emerg|crit)\]`, line)
			if !strings.Contains(line, `"uri":"/event/connect"`) {
				continue
			}
			var entry struct{ Status int }
			require.NoError(s.t, json.Unmarshal([]byte(line), &entry), line)
			require.Equal(s.t, http.StatusOK, entry.Status)
			streams++
		}
		return streams == 200+5+1 // streams of soak and of k6, and the trial of soak
	})
}

// restartBackend restarts the backend, which nginx must find without a reload.
func (s *stack) restartBackend() {
	require.NoError(s.t, s.noop("before"))
	s.compose("restart", "backend-1")
	await(s.t, "the backend must be ready after its restart", func() bool { status, _ := s.request(http.MethodGet, "/readyz", ""); return status == http.StatusOK })
	require.NoError(s.t, s.noop("after"))
}

// noop opens a stream and waits for its first noop.
func (s *stack) noop(id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/event/connect?id="+id, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("connect: %s", resp.Status)
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if lines.Text() == "data: 0" {
			return nil
		}
	}
	return fmt.Errorf("no noop arrived on %s", id)
}

// extendToCluster extends the stack to three backends, and asserts that nginx sends the connect and DELETE requests of
// an id to the same backend.
func (s *stack) extendToCluster() {
	s.set(map[string]string{"COMPOSE_PROFILES": "cluster,alerts"})
	s.up()
	s.requireScrape(3)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const streams = 60
	for n := range streams {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/event/connect?id=c-%d", s.url, n), nil)
		require.NoError(s.t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(s.t, err)
		defer resp.Body.Close()
		require.Equal(s.t, http.StatusOK, resp.StatusCode)
	}
	await(s.t, "all backends must have streams", func() bool {
		return s.value(`sum(backend_streams_open)`) == fmt.Sprint(streams) && s.value(`count(backend_streams_open > 0)`) == "3"
	})
	for n := range streams {
		status, body := s.request(http.MethodDelete, fmt.Sprintf("/event/forcedisconnect?id=c-%d", n), s.env["BACKEND_TOKEN"])
		require.Equal(s.t, http.StatusOK, status, body)
	}
}

// requireFailureReason asserts that infra/compose/failures prints the error of a service that did not start.
func (s *stack) requireFailureReason() {
	port := s.env["HTTP_PORT"]
	s.set(map[string]string{"HTTP_PORT": "http"})
	s.compose("up", "-d", "--no-deps", "--force-recreate", "nginxconf")
	s.set(map[string]string{"HTTP_PORT": port})
	await(s.t, "infra/compose/failures must print the error of nginxconf", func() bool {
		out := runWith(s.t, time.Minute, []string{"COMPOSE_PROJECT_NAME=" + project, "COMPOSE_ENV_FILES=" + s.file}, "infra/compose/failures")
		return strings.Contains(out, "nginxconf did not start:") && strings.Contains(out, `HTTP_PORT must be the number of a port, got "http"`)
	})
}
