//go:build e2e

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
)

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		args     []string
		wantText string
	}{
		"back":        {[]string{"run", "--reconnect", "--back-within", "0"}, "BACK_WITHIN must be positive"},
		"action":      {[]string{"run", "--at", "60 deploy: systemctl restart hub"}, `--at must begin with a time after the start, such as 60s, 1m30s or 2h, got "60" in "60 deploy: systemctl restart hub"`},
		"too late":    {[]string{"run", "--seconds", "35", "--at", "30s deploy: systemctl restart hub"}, "the action deploy must start before 30s, when the streams end, got 30s"},
		"continue":    {[]string{"run", "--continue"}, "to continue a whole run after its soak process was killed, use `soak attach TESTID`"},
		"flag":        {[]string{"run", "--nonsense"}, "unknown flag"},
		"argument":    {[]string{"run", "now"}, "unexpected argument"},
		"suite":       {[]string{"run", "stom"}, `unexpected argument "stom": no such suite; did you mean storm?`},
		"a URL":       {[]string{"run", "http://h/events"}, "run `soak init http://h/events` to describe the service"},
		"not similar": {[]string{"run", "--json", "5"}, "unknown flag: --json\n"},
		"misspelled":  {[]string{"run", "--conections", "5"}, "unknown flag: --conections; did you mean --connections?"},
		"no CA":       {[]string{"run", "--ca", "nosuch.pem"}, "--ca: open nosuch.pem"},
		"profile":     {[]string{"run", "rampup", "--profile", "tiny"}, `PROFILE must be smoke or full, got "tiny"`},
		"stage":       {[]string{"run", "rampup", "--stages", "20,20"}, `stages must have unique names, got "rate-20"`},
		"ceiling":     {[]string{"run", "rampup", "--ceiling", "5"}, "CEILING must be at least the lowest of STAGES"},
		"runners":     {[]string{"run", "rampup", "--runners", "0"}, "RUNNERS must be at least 1, got 0"},
		"command":     {[]string{"walk"}, "unknown command"},
		"no folder":   {[]string{"merge"}, "name one folder"},
		"one runner":  {[]string{"run", "capacity", "--runners", "2"}, "RUNNERS must be 1 for capacity, which needs the data of all connections, got 2"},
		"levels":      {[]string{"run", "fanout", "--levels", "50,20"}, "LEVELS must increase, because each level adds connections to the previous one, got 50,20"},
		"broadcasts":  {[]string{"run", "fanout", "--broadcasts", "0"}, "BROADCASTS must be at least 1, got 0"},
		"no share":    {[]string{"run", "slow", "--slow-percent", "0"}, "SLOW_PERCENT must be from 1 to 50 percent, got 0"},
		"too few":     {[]string{"run", "vanish", "--connections", "9", "--vanish-percent", "20"}, "CONNECTIONS must be at least 10 with VANISH_PERCENT=20, got 9"},
		"ever faster": {[]string{"run", "churn", "--noop-interval", "0"}, "NOOP_INTERVAL must be at least 0.001 seconds, got 0"},
		"two runs":    {[]string{"compare", "a", "b"}, "`soak history a b` shows what changed between these two"},
		"not number":  {[]string{"run", "--connections", "abc"}, `soak: --connections must be a whole number, got "abc"`},
		"no duration": {[]string{"run", "--start-timeout", "soon"}, `soak: --start-timeout must be a duration, such as 90s or 10m, got "soon"`},
		"tolerance":   {[]string{"compare", "--tolerance", "-1", "a", "b", "c"}, "--tolerance must be at least 0, got -1"},
		"two URLs":    {[]string{"run", "rampup", "--backend-url", "http://a,http://b"}, "BACKEND_URL must be the URL of a service, such as http://127.0.0.1:8080, got \"http://a,http://b\""},
		"no cluster":  {[]string{"run", "cluster", "--cluster-url", "h"}, "CLUSTER_URL must begin with http:// or https:// and name a host, got \"h\""},
		"service":     {serviceFlags("nchann"), `SERVICE must be the path of a .js file, or one of a2a, ag-ui, anthropic-messages, centrifugo,`},
		"no file":     {serviceFlags("nosuch/mine.js"), "nosuch/mine.js\""},
		"mistakes":    {serviceFlags("testdata/mistaken.js"), "connect.url: unknown placeholder {tpoic}: did you mean {topic}?"},
		"both rates":  {[]string{"plan", "--topics", "5", "--noop-interval", "2"}, "--noop-interval cannot be combined with --topics"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			cmd := exec.Command(filepath.Join(root, "bin", "soak"), c.args...)
			cmd.Env = append(cmd.Environ(), "OUT="+out)
			text, err := cmd.CombinedOutput()
			exit, ok := err.(*exec.ExitError)
			require.True(t, ok, string(text))
			require.Equal(t, 64, exit.ExitCode(), string(text))
			require.Contains(t, string(text), c.wantText)
			require.NotContains(t, string(text), "strconv")
			entries, err := filepath.Glob(filepath.Join(out, "*"))
			require.NoError(t, err)
			require.Empty(t, entries, "no incomplete folder may remain")
		})
	}
}

func serviceFlags(service string) []string {
	return []string{"run", "--service", service, "--topics", "5", "--publish-rate", "2", "--backend-url", "http://127.0.0.1:1"}
}

func TestSuiteNeedsNoops(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(filepath.Join(root, "bin", "soak"), "run", "capacity", "--out", t.TempDir())
	cmd.Env = append(cmd.Environ(), "SERVICE=nchan")
	text, err := cmd.CombinedOutput()
	require.ErrorContains(t, err, "exit status 64")
	require.Contains(t, string(text), `SERVICE must be noop for capacity, got "nchan"`)
}

// A service with another protocol leads to one sentence within 10 s, without a report.
func TestUnknownServiceError(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/html/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<h1>hello</h1>")
	})
	mux.HandleFunc("/401/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/500/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	mux.HandleFunc("/hang/", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	plain := httptest.NewServer(mux)
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(mux)
	t.Cleanup(secure.Close)
	for url, message := range map[string]string{
		plain.URL + "/404":    "/404/event/connect?… answered 404 Not Found",
		plain.URL + "/401":    "/401/event/connect?… answered 401 Unauthorized",
		plain.URL + "/500":    "/500/event/connect?… answered 500 Internal Server Error",
		plain.URL + "/html":   "/html/event/connect?… answered 200 with text/html, which is not an event stream",
		plain.URL + "/hang":   "/hang/event/connect?…: no response within 6 s",
		secure.URL:            "untrusted certificate (x509: certificate signed by unknown authority); pass --ca FILE",
		"http://127.0.0.1:1":  "GET http://127.0.0.1:1/event/connect?…: nothing listens there (connection refused)",
		"https://127.0.0.1:1": "GET https://127.0.0.1:1/event/connect?…: nothing listens there (connection refused)",
	} {
		t.Run(strings.TrimPrefix(message, "/"), func(t *testing.T) {
			t.Parallel()
			r := begin(t, nil, "--backend-url", url, "--connections", "5", "--seconds", "8", "--noop-interval", "1")
			require.Equal(t, 2, r.end())
			out := r.out.String()
			require.True(t, strings.HasPrefix(out, "soak t: 5 connections for 8 s, "), out)
			require.Contains(t, out, message)
			require.Contains(t, out, "without --service, soak expects the noop protocol (docs/services.md): for any other service, run `soak init "+url+"`")
			require.NoFileExists(t, r.dir.Path(results.VerdictFile))
		})
	}
}

func TestOtherIntervalIsInvalid(t *testing.T) {
	t.Parallel()
	url := backend(t, "NOOP_INTERVAL=2")
	r := begin(t, nil, "--backend-url", url, "--connections", "5", "--seconds", "8", "--noop-interval", "1")
	require.Equal(t, 2, r.end())
	require.Contains(t, r.out.String(), "the backend sends a noop every 2s, and the plan has 1s")
}

func TestScriptErrors(t *testing.T) {
	t.Parallel()
	for message, env := range map[string][]string{
		"BACKEND_URL is missing":                    {"BACKEND_URL="},
		"SECONDS must be a whole number of seconds": {"BACKEND_URL=http://127.0.0.1:1", "SECONDS=x"},
		"so that a stream receives two noops":       {"BACKEND_URL=http://127.0.0.1:1", "SECONDS=10"},
	} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			args := []string{"run", "--quiet", filepath.Join(root, "load-tests/sse/connectionTest.js")}
			for _, e := range env {
				args = append(args, "--env", e)
			}
			text, err := exec.Command(filepath.Join(root, "bin", "k6"), args...).CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(text), message)
			require.NotContains(t, strings.ToLower(string(text)), "panic")
		})
	}
}
