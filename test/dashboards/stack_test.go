//go:build dashboards

package dashboards

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/infra/alertmanager"
	"github.com/sse-soak/sse-soak/internal/control"
	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/grafana"
	"github.com/sse-soak/sse-soak/test/untested"
)

const (
	root     = "../.."
	testID   = "live"
	streams  = 100
	interval = 5 // seconds between two noops; LATE_MS is half of it, and must be long enough for a busy machine
	runners  = 2

	scrapeInterval = 2 * time.Second // interval of scrapes and rules; shorter than in compose.yaml, so that tests wait less
)

// length returns the duration of the run in seconds: DASHBOARDS_SECONDS, or 40.
func length(t *testing.T) int {
	text := os.Getenv("DASHBOARDS_SECONDS")
	if text == "" {
		return 40
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "DASHBOARDS_SECONDS must be a whole number of seconds")
	return n
}

// A stack is a soak with all its monitoring, on loopback.
type stack struct {
	t                                            *testing.T
	dir                                          string
	backend, nginx, status, node, exporter, prom string // addresses
	alerts                                       string // address of the Alertmanager; "": none
	reference                                    string // address of the reference server of the control group
	hasExporter                                  bool
	service                                      *process.Process // the backend
	runners                                      []*process.Process
}

// startStack starts all programs except the runners and the Alertmanager. env has settings of the backend.
func startStack(t *testing.T, env ...string) *stack {
	t.Helper()
	return startStackWithAlerts(t, "", env...)
}

// startStackWithAlerts is like startStack. It also starts an Alertmanager that calls webhook, unless webhook is "".
func startStackWithAlerts(t *testing.T, webhook string, env ...string) *stack {
	t.Helper()
	s := &stack{t: t, dir: t.TempDir()}
	if webhook != "" {
		s.startAlertmanager(webhook)
	}
	for _, field := range []*string{&s.backend, &s.nginx, &s.status, &s.node, &s.exporter, &s.prom} {
		*field = address.Reserve(t)
	}
	s.startBackend(env...)
	s.startNginx()
	s.start("node_exporter", nil, program(t, "node_exporter", "prometheus-node-exporter"),
		"--web.listen-address="+s.node, "--collector.tcpstat", "--log.level=error")
	s.awaitReady("http://" + s.node + "/metrics")
	if path := firstProgram("nginx-prometheus-exporter", "prometheus-nginx-exporter"); path != "" {
		s.hasExporter = true
		s.start("nginx_exporter", nil, path, "--nginx.scrape-uri=http://"+s.status+"/", "--web.listen-address="+s.exporter)
		s.awaitReady("http://" + s.exporter + "/metrics")
	}
	s.startPrometheus()
	s.startReference()
	return s
}

func (s *stack) startReference() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	s.reference = listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = control.Serve(ctx, listener)
	}()
	s.t.Cleanup(func() {
		stop()
		<-done
	})
}

func (s *stack) startBackend(env ...string) {
	s.service = s.start("backend", append(env, "LISTEN="+s.backend, "NOOP_INTERVAL="+strconv.Itoa(interval)), filepath.Join(root, "bin", "backend"))
	s.awaitReady("http://" + s.backend + "/readyz")
}

// restartBackend kills the backend and starts another one.
func (s *stack) restartBackend() {
	s.service.Stop(context.Background(), syscall.SIGKILL, 10*time.Second)
	s.startBackend()
}

func (s *stack) startNginx() {
	conf := filepath.Join(s.dir, "nginx.conf")
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	s.write(conf, fmt.Sprintf(`daemon off; %s pid %s/nginx.pid; error_log stderr warn; worker_processes 1;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy; fastcgi_temp_path %[2]s/f; uwsgi_temp_path %[2]s/u; scgi_temp_path %[2]s/s;
  server { listen %[3]s backlog=1024; location / { proxy_pass http://%[4]s; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }
  server { listen %[5]s; location / { stub_status; } }
}
`, user, s.dir, s.nginx, s.backend, s.status))
	s.start("nginx", nil, program(s.t, "nginx", "/usr/sbin/nginx"), "-e", "stderr", "-c", conf)
	s.awaitReady("http://" + s.status + "/")
}

// startPrometheus starts a Prometheus server with the job names and rules of infra/prometheus.
func (s *stack) startPrometheus() {
	config := filepath.Join(s.dir, "prometheus.yml")
	rules, err := filepath.Abs(filepath.Join(root, "infra", "prometheus", "rules"))
	require.NoError(s.t, err)
	require.DirExists(s.t, rules)
	text := fmt.Sprintf("global: {scrape_interval: %[1]s, scrape_timeout: %[1]s, evaluation_interval: %[1]s}\n", scrapeInterval) +
		"rule_files: ['" + rules + "/*.yml']\n"
	if s.alerts != "" {
		text += "alerting: {alertmanagers: [{static_configs: [{targets: ['" + s.alerts + "']}]}]}\n"
	}
	text += "scrape_configs:\n"
	jobs := []struct{ name, address string }{{"backend", s.backend}, {"node", s.node}, {"prometheus", s.prom}}
	if s.hasExporter {
		jobs = append(jobs, struct{ name, address string }{"nginx", s.exporter})
	}
	for _, job := range jobs {
		text += fmt.Sprintf("- {job_name: %s, static_configs: [{targets: ['%s']}]}\n", job.name, job.address)
	}
	s.write(config, text)
	s.start("prometheus", nil, program(s.t, "prometheus"), "--config.file="+config, "--storage.tsdb.path="+filepath.Join(s.dir, "tsdb"),
		"--web.listen-address="+s.prom, "--web.enable-remote-write-receiver", "--log.level=warn")
	s.awaitReady("http://" + s.prom + "/-/ready")
}

// startAlertmanager starts an Alertmanager with the configuration of infra/alertmanager.
func (s *stack) startAlertmanager(webhook string) {
	s.alerts = address.Reserve(s.t)
	text, err := alertmanager.Config(webhook, "")
	require.NoError(s.t, err)
	config := filepath.Join(s.dir, "alertmanager.yml")
	s.write(config, string(text))
	s.start("alertmanager", nil, program(s.t, "alertmanager", "prometheus-alertmanager"), "--config.file="+config,
		"--storage.path="+filepath.Join(s.dir, "alertmanager"), "--web.listen-address="+s.alerts, "--web.route-prefix=/", "--cluster.listen-address=")
	s.awaitReady("http://" + s.alerts + "/-/ready")
}

// soak starts connectionTest.js on all runners, with the commands of docs/stack.md. wait waits until the runners have
// ended, and asserts their exit code.
func (s *stack) soak(seconds int) (wait func(exitCode int)) {
	s.t.Helper()
	bounds := map[int]string{0: "0", 1: "1/2", 2: "1"}
	var all []*process.Process
	for i := 1; i <= runners; i++ {
		all = append(all, s.runner(testID, seconds, i, "--execution-segment", bounds[i-1]+":"+bounds[i], "--execution-segment-sequence", "0,1/2,1"))
	}
	s.runners = all
	return func(exitCode int) {
		s.t.Helper()
		for _, k6 := range all {
			s.requireExit(k6, exitCode)
		}
	}
}

func (s *stack) requireExit(k6 *process.Process, exitCode int) {
	s.t.Helper()
	<-k6.Done()
	log, _ := os.ReadFile(filepath.Join(s.dir, k6.Name+".log"))
	require.Equal(s.t, exitCode, k6.ExitCode(), "%s: %s", k6.Name, log)
}

func (s *stack) runner(run string, seconds, number int, flags ...string) *process.Process {
	s.t.Helper()
	p := plan.Default()
	p.TestID, p.Prefix, p.BackendURL, p.ControlURL = run, run+"-", "http://"+s.nginx, "http://"+s.reference
	p.Connections, p.ConnectionsPerVU, p.Runners, p.Seconds, p.NoopInterval, p.Control, p.LateMS = streams, 5, runners, seconds, interval, 5, 1000*interval/2
	env := []string{
		"RUNNER=" + strconv.Itoa(number), "K6_NO_USAGE_REPORT=true", "K6_AUTO_EXTENSION_RESOLUTION=false",
		"K6_PROMETHEUS_RW_SERVER_URL=http://" + s.prom + "/api/v1/write", "K6_PROMETHEUS_RW_TREND_STATS=p(50),p(99),max",
	}
	for name, value := range (plan.Document{Plan: p, Actions: []plan.Action{{Name: "deploy", At: 5 * time.Second}}}).Variables() {
		env = append(env, name+"="+value)
	}
	args := append([]string{
		"run", "--quiet", "--no-color", "--out", "experimental-prometheus-rw", "--out", "soak=" + filepath.Join(s.dir, "shards-"+run), "--tag", "testid=" + run, "--tag", "runner=" + strconv.Itoa(number),
	}, flags...)
	return s.start("k6-"+run+"-"+strconv.Itoa(number), env, filepath.Join(root, "bin", "k6"),
		append(args, filepath.Join(root, "load-tests", "sse", "connectionTest.js"))...)
}

// start starts a program. The program ends with the test, or with the process of the test.
func (s *stack) start(name string, env []string, path string, args ...string) *process.Process {
	s.t.Helper()
	c, err := process.Start(process.Spec{
		Name: name, Path: path, Args: args, Env: append(os.Environ(), env...),
		Log: filepath.Join(s.dir, name+".log"), OrphanSignal: syscall.SIGTERM,
	})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { c.Stop(context.Background(), syscall.SIGTERM, 10*time.Second) })
	return c
}

func (s *stack) awaitReady(url string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, 2*time.Minute, 100*time.Millisecond, "%s must respond; %s", url, lazyLog(s.logs))
}

// querier returns a querier whose time range starts now.
func (s *stack) querier(step time.Duration) querier {
	now := time.Now().Truncate(time.Second)
	return querier{
		Prometheus: "http://" + s.prom, Range: prometheus.Range{Start: now, End: now, Step: step},
		Variables: map[string]string{"testid": testID, "instance": ".*"},
	}
}

func (s *stack) await(expr string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		got, err := grafana.View(s.querier(time.Second)).Ask(context.Background(), expr)
		return err == nil && len(got) > 0
	}, 2*time.Minute, 500*time.Millisecond, "the query %s must return data; %s", expr, lazyLog(s.logs))
}

// A lazyLog is formatted only when a wait has failed.
type lazyLog func() string

func (f lazyLog) String() string { return f() }

func (s *stack) logs() string {
	var all bytes.Buffer
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.log"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		fmt.Fprintf(&all, "%s:\n%s\n", filepath.Base(file), text)
	}
	return all.String()
}

func (s *stack) write(path, text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o600))
}

// firstProgram returns the path of the first installed program, or "".
func firstProgram(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// program is like firstProgram, but calls untested.SkipMissing if no program is installed.
func program(t *testing.T, names ...string) string {
	t.Helper()
	path := firstProgram(names...)
	if path == "" {
		untested.SkipMissing(t, names[0]+" is not installed; run `apt-get install nginx-light prometheus prometheus-alertmanager prometheus-node-exporter prometheus-nginx-exporter`")
	}
	return path
}
