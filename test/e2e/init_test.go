//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/services"
)

// initialize runs `soak init` in an empty folder, and returns the folder, the description and the output.
func initialize(t *testing.T, url, name string, args ...string) (folder, module, output string) {
	t.Helper()
	soak, err := filepath.Abs(filepath.Join(root, "bin", "soak"))
	require.NoError(t, err)
	folder = t.TempDir()
	cmd := exec.CommandContext(t.Context(), soak, append([]string{"init", url, "--name", name, "--seconds", "20"}, args...)...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(filepath.Join(folder, name+".js"))
	require.NoError(t, err)
	return folder, string(text), string(out)
}

// beginInFolder starts `soak run` in a folder whose soak.yaml has the settings of the run.
func beginInFolder(t *testing.T, folder string, args ...string) *soakRun {
	t.Helper()
	soak, err := filepath.Abs(filepath.Join(root, "bin", "soak"))
	require.NoError(t, err)
	r := prepare(t, t.TempDir(), nil, nil, args...)
	r.cmd.Path, r.cmd.Dir = soak, folder
	r.start()
	return r
}

// `soak init` with the URL of a stream creates all files that `soak run` needs, in an empty folder.
func TestSoakInAnEmptyFolder(t *testing.T) {
	t.Parallel()
	url := backend(t, "NOOP_INTERVAL=1")
	folder, _, output := initialize(t, url+"/event/connect?id={id}", "hub")
	require.Contains(t, output, "which checks every message:\n    soak run\n")
	require.FileExists(t, filepath.Join(folder, ".github/workflows/soak.yml"))
	settings, err := os.ReadFile(filepath.Join(folder, "soak.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(settings), "\nbackend-url: "+url+"\n")

	r := beginInFolder(t, folder, "--connections", "10", "--seconds", "12")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, "hub", v.Plan.ServiceName())
	require.Contains(t, r.out.String(), "using the settings in soak.yaml\n")
}

// `soak init` describes a service that responds to each POST with numbered events and a terminal event.
func TestInitDescribesFiniteResponses(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := requests.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		for k := range 8 {
			if n != 10 || k != 3 {
				fmt.Fprintf(w, "event: piece\ndata: {\"n\":%d,\"text\":\"a\"}\n\n", k)
				_ = http.NewResponseController(w).Flush()
			}
		}
		fmt.Fprint(w, "event: finished\ndata: {}\n\n")
	}))
	t.Cleanup(server.Close)
	folder, module, output := initialize(t, server.URL+"/ask", "answers", "--method", "POST", "--body", `{"question":"{prompt}"}`)
	require.Contains(t, output, "    soak run finite --rate 1\n")
	require.Contains(t, module, "done: { event: 'finished' },")

	v := beginInFolder(t, folder, "finite", "--rate", "10", "--seconds", "3").verdict()
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.EqualValues(t, [2]int64{30, 1}, [2]int64{v.Responses.Complete, int64(v.Messages.Missed)})
	require.Contains(t, reasons(v), "number 3")
}

// `soak init` describes a chat service without a field for numbers: the numbers are in the text of the messages.
func TestSoakOfAPlainTextService(t *testing.T) {
	t.Parallel()
	service := startService(t, "fastapi", services.Options{})
	folder, _, output := initialize(t, service.URL+"/api/rooms/news/events", "chat", "--topic", "news",
		"--publish-url", service.URL+"/api/rooms/news/messages",
		"--publish-body", `{"author":"soak","text":"run={run} seq={seq} t={sentAt} sum={sum}"}`)
	require.Contains(t, output, "which checks every message:\n    soak run\n")

	r := beginInFolder(t, folder, "--seconds", "14", "--require-messages")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.EqualValues(t, 10, v.Connections.Planned)
	require.Positive(t, v.Messages.Received)
	require.Equal(t, "news", v.Messages.Topics[0].Name)
}

// streamOf starts a service and returns its URL. Each stream sends text(stream, n) for n = 0, 1, … and ends when text
// returns "". The time between two texts is at least interval.
func streamOf(t *testing.T, interval time.Duration, text func(stream, n int) string) string {
	t.Helper()
	var streams atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream := int(streams.Add(1))
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for n := 0; ; n++ {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(interval + interval*time.Duration(n*n%5)/2): // irregular
			}
			block := text(stream, n)
			if block == "" {
				return
			}
			_, _ = fmt.Fprint(w, block)
			w.(http.Flusher).Flush()
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A new user calls soak init for a service whose messages cannot be checked, and runs the result. The run passes for
// connections only. With --require-messages, it is invalid.
func TestInitAndRunWithoutCheckableMessages(t *testing.T) {
	t.Parallel()
	url := streamOf(t, 170*time.Millisecond, func(stream, n int) string {
		if n%3 == stream%2 {
			return ": ping\n\n"
		}
		return fmt.Sprintf("event: price\ndata: {\"price\":%d}\n\n", (n*7919+stream)%1000)
	})
	folder, module, _ := initialize(t, url+"/events", "mine")
	require.Contains(t, module, "message: 'unchecked',")
	workflow, err := os.ReadFile(filepath.Join(folder, ".github", "workflows", "soak.yml"))
	require.NoError(t, err)
	require.Contains(t, string(workflow), "\n            --require-messages\n")

	r := beginInFolder(t, folder, "--connections", "4", "--seconds", "15")
	strict := beginInFolder(t, folder, "--connections", "4", "--seconds", "15", "--require-messages")
	v := r.verdict()
	require.NotNil(t, v.MessagesChecked)
	require.False(t, *v.MessagesChecked)
	require.NotContains(t, r.out.String(), "does not name")
	require.True(t, v.ConnectionsOnly(), r.out.String())
	require.Regexp(t, `PASS \(connections only\): \d+ of \d+ streams open to the end, messages were\s+not\s+checked`, r.out.String())
	require.Contains(t, strings.Join(strings.Fields(r.out.String()), " "), "events that were not checked")
	lines := strings.Split(strings.TrimSpace(r.out.String()), "\n")
	require.Contains(t, r.out.String(), "run `soak init` with --publish-url")
	require.Contains(t, lines[len(lines)-1], "PASS (connections only)", "the verdict must be the last line")

	v = strict.verdict()
	require.Equal(t, verdict.Invalid, v.Verdict, strict.out.String())
	require.Contains(t, reasons(v), "REQUIRE_MESSAGES")
}

// Wrong arguments, and settings that a script or a description rejects, end soak with exit code 64, before it creates a
// folder.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	target := backend(t, "NOOP_INTERVAL=1") // some targets are tried before the script is loaded
	short := writeFile(t, "short.js", `export default { name: 'short', connect: { url: '{base}/{topic}' }, message: { seq: 'json:$.seq', run: 'json:$.run' },
		end: { by: 'server', lifetime: 14 }, publish: { url: '{base}/{topic}', body: '{"run":"{run}","seq":{seq},"pad":"{padding}"}' } };`)
	publishArgs := func(service string, args ...string) []string {
		return append([]string{"--service", service, "--topics", "1", "--publish-rate", "10", "--backend-url", "http://127.0.0.1:1"}, args...)
	}
	suite := func(name string, args ...string) []string {
		return append([]string{"run", name, "--profile", "smoke"}, args...)
	}
	for wantText, args := range map[string][]string{
		"the action deploy must start before 30s, the end of the load, got 30s":               {"run", "--seconds", "35", "--at", "30s deploy: systemctl restart hub"},
		"to continue a whole run after its soak process was killed, use `soak attach TESTID`": {"run", "--continue"},
		"unknown flag": {"run", "--nonsense"},
		`unexpected argument "stom": no such suite; did you mean storm?`: {"run", "stom"},
		"unknown command": {"walk"},
		"name one folder": {"merge"},
		"run `soak history a b` to list the changes between these two":                                  {"compare", "a", "b"},
		"--noop-interval cannot be combined with --topics":                                              {"plan", "--topics", "5", "--noop-interval", "2"},
		"--ca: open nosuch.pem":                                                                         {"run", "--ca", "nosuch.pem"},
		`soak: --start-timeout must be a duration, such as 90s or 10m, got "soon"`:                      {"run", "--start-timeout", "soon"},
		"BACK_WITHIN must be positive":                                                                  {"run", "--reconnect", "--back-within", "0"},
		"RUNNERS must be at least 1, got 0":                                                             {"run", "rampup", "--runners", "0"},
		"CEILING must be at least the lowest of STAGES":                                                 {"run", "rampup", "--ceiling", "5"},
		`CLUSTER_URL must begin with http:// or https:// and name a host, got "h"`:                      {"run", "cluster", "--cluster-url", "h"},
		"RATE_LIMIT must be 0, or at least 1 per runner":                                                {"run", "handshake", "--certs", certificates(t), "--rate-limit", "0.5"},
		"TIMEOUT_SECONDS must be at most 1000000000, got 1e+300":                                        {"run", "burst", "--timeout-seconds", "1e300"},
		"RUNNERS must be 1 for capacity, which needs the data of all streams, got 2":                    {"run", "capacity", "--runners", "2"},
		"LEVELS must increase, because each level adds streams to the previous one, got 50,20":          {"run", "fanout", "--levels", "50,20"},
		"CONNECTIONS must be at least 10 with VANISH_PERCENT=20, got 9":                                 {"run", "vanish", "--connections", "9", "--vanish-percent", "20"},
		"SECONDS must be at least 15, because 200 streams need 4 seconds to open, and each of two":      suite("storm", "--seconds", "10"),
		fmt.Sprintf("GAUGE must count the open streams, got pid:%d, which is memory", os.Getpid()):      suite("vanish", "--gauge", fmt.Sprint("pid:", os.Getpid()), "--backend-url", target),
		"needs a gauge of its open streams, which shows when it notices a loss; set GAUGE":              suite("vanish", publishArgs(describeBackend(t), "--backend-url", target)...),
		"SEQUENCE × SEQUENCE_MB must be at most 1000, because each runner keeps all bodies in memory":   suite("upload", "--sequence-mb", "99999"),
		"a slow client would fall behind by less than 4096 KB (FILL_KB)":                                suite("slow", "--message-rate", "1"),
		"publish.body of the description of mine has no {padding}":                                      suite("slow", publishArgs(describeHub(t, ""))...),
		"the description of sse must have publish":                                                      suite("slow", "--service", "sse", "--backend-url", "http://127.0.0.1:1"),
		"short may end its streams after 14 seconds (end.lifetime, TOKEN_TTL)":                          suite("slow", publishArgs(short, "--seconds", "30")...),
		"must have streams that end by themselves":                                                      suite("finite", "--service", "nchan", "--backend-url", "http://127.0.0.1:1"),
		"RATE or CONCURRENCY must be over 0":                                                            suite("finite", "--rate", "0"),
		"set it to a file with one JSON value":                                                          suite("finite", "--prompts", "missing.ndjson"),
		"is a folder; set it to a file":                                                                 suite("finite", "--prompts", "."),
		"soak run finite":                                                                               {"run", "--service", "openai-chat", "--backend-url", "http://127.0.0.1:1"},
		"SERVICE must be the path of a .js file, or one of a2a, ag-ui, anthropic-messages, centrifugo,": append([]string{"run"}, publishArgs("nchann")...),
		`nosuch/mine.js"`: append([]string{"run"}, publishArgs("nosuch/mine.js")...),
		"connect.url: unknown placeholder {tpoic}; did you mean {topic}?": append([]string{"run"}, publishArgs("testdata/mistaken.js")...),
	} {
		t.Run(wantText, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			cmd := exec.Command(filepath.Join(root, "bin", "soak"), args...)
			cmd.Env = append(cmd.Environ(), "OUT="+out)
			text, err := cmd.CombinedOutput()
			exit, ok := err.(*exec.ExitError)
			require.True(t, ok, string(text))
			require.Equal(t, 64, exit.ExitCode(), string(text))
			require.Contains(t, string(text), wantText)
			entries, err := filepath.Glob(filepath.Join(out, "*"))
			require.NoError(t, err)
			require.Empty(t, entries, "no incomplete folder may remain")
		})
	}
}

// A target that opens no event stream ends the run before the load. soak reports the cause, but writes no verdict.
func TestUnknownServiceError(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/html/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<h1>hello</h1>")
	})
	plainServer := httptest.NewServer(mux)
	t.Cleanup(plainServer.Close)
	tlsServer := httptest.NewTLSServer(mux)
	t.Cleanup(tlsServer.Close)
	for url, message := range map[string]string{
		plainServer.URL + "/html": "/html/event/connect?… answered 200 with text/html (<h1>hello</h1>), which is not an event stream",
		tlsServer.URL:             "untrusted certificate (x509: certificate signed by unknown authority); pass --ca FILE",
		"http://127.0.0.1:1":      "GET http://127.0.0.1:1/event/connect?…: nothing is listening there (connection refused)",
	} {
		t.Run(strings.TrimPrefix(message, "/"), func(t *testing.T) {
			t.Parallel()
			r := begin(t, nil, "--backend-url", url, "--connections", "5", "--seconds", "8", "--noop-interval", "1")
			require.Equal(t, 2, r.end())
			out := r.out.String()
			require.True(t, strings.HasPrefix(out, "soak t: 5 streams for 3 s, "), out)
			require.Contains(t, out, message)
			require.Contains(t, out, "without --service, soak expects the noop protocol (docs/services.md): for any other service, run `soak init "+url+"`")
			require.NoFileExists(t, r.dir.Path(results.VerdictFile))
		})
	}
}
