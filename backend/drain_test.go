package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// A drain ends each stream with the terminator. The backend accepts no new stream, still serves the complete ledger,
// and then saves it.
func TestDrain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startTest(t, "--noop-interval=50ms", "--drain-timeout=1s", "--ledger-file="+dir+"/ledger.ndjson")
	var list []*stream
	for _, id := range []string{"a", "b", "c"} {
		list = append(list, s.open(id))
	}
	list[0].numbers(3)
	dial(t, s.addr) // connected before the drain
	drainResult := make(chan error)
	go func() { drainResult <- s.drain(t.Context()) }()
	received := map[string]uint64{"a": 3}
	for _, c := range list {
		events, err := c.readAll()
		require.NoError(t, err, "the stream must end with the terminator")
		received[c.id] += uint64(len(events))
	}
	for _, path := range []string{"/readyz", "/event/connect?id=new"} {
		status, header, _ := s.request("GET", path, "")
		require.Equal(t, 503, status)
		require.NotEmpty(t, header.Get("Retry-After"))
	}
	rows := s.rows("")
	require.Len(t, rows, 3)
	for id, n := range received {
		require.Equal(t, n, rows[id].Sent)
		require.Equal(t, "drain", rows[id].Closed)
	}
	require.NoError(t, <-drainResult)
	data, err := os.ReadFile(dir + "/ledger.ndjson")
	require.NoError(t, err)
	require.Equal(t, rows, parseRows(t, string(data)))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file may remain")
}

// A drain also ends a stream that a pending connect would replace.
func TestDrainEndsAStreamBeforeItsTakeover(t *testing.T) {
	t.Parallel()
	s := startTest(t)
	s.open("a")
	var err error
	s.hub.call(func() {
		_, err = s.hub.reserve("a", lastEventID{explicit: true})
		s.hub.drain()
	})
	require.NoError(t, err)
	require.Zero(t, s.hub.openStreams())
}

func TestSecondSignalEndsTheDrain(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGTERM
	signals <- syscall.SIGTERM
	require.Equal(t, exitError, run([]string{"--listen=127.0.0.1:0", "--drain-timeout=1h"}, noEnv, signals, io.Discard, io.Discard))
}

// A client that never reads delays a drain by at most WRITE_TIMEOUT.
func TestDrainDisconnectsSlowClients(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--write-timeout=300ms", "--noop-interval=1h", "--max-pending=1000")
	s.open("a")
	s.fill("a")
	require.NoError(t, s.drain(t.Context()))
	require.Zero(t, s.hub.openStreams())
}

// fill sends messages to a client that does not read, until its socket buffers are full. The kernel may first enlarge
// them.
func (s *testService) fill(id string) {
	s.t.Helper()
	body := eventBody("", bytes.Repeat([]byte("x"), maxBody))
	eventually(s.t, "the socket buffer is full", func() (full bool) {
		s.hub.call(func() {
			q := s.hub.devices[id].queue
			if q == nil {
				s.hub.send(id, body)
				return
			}
			full = s.hub.clk.elapsed()-q.items[0].since > 4*retryPace
		})
		return full
	})
}

// Invalid arguments cause a one-line error and exit code 64.
func TestUsage(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"--noop-interval=0":          "between",
		"--noop-interval=-1":         "between",
		"--noop-interval=soon":       "write seconds",
		"--noop-interval=NaN":        "must be a number",
		"--noop-schedule=random":     "broadcast or staggered",
		"--max-connections=-1":       "whole number",
		"--max-connections=16000000": "file descriptors",
		"--listen=nowhere":           "HOST:PORT",
		"--listen=127.0.0.1:http":    "HOST:PORT",
		"--listen=127.0.0.1:70000":   "HOST:PORT",
		"--tls-cert=x":               "require each other",
		"--tls-client-ca=x":          "needs TLS_CERT",
		"--backend-token=two words":  "printable",
		"--backend-fault=explode":    "unknown kind",
		"--admin-listen=0.0.0.0:1":   "loopback",
		"--socket-mode=999":          "octal",
		"--log-level=loud":           "choose debug",
		"--noop-timestamps=maybe":    "on or off",
		"--write-timeout=0":          "between",
		"--resume-window=-1s":        "between",
		"--unknown":                  "--help",
		"argument":                   "unexpected argument",
		"--max-pending=0":            "whole number",
	}
	for flag, want := range cases {
		var stdout, stderr bytes.Buffer
		require.Equal(t, exitUsage, run([]string{flag}, noEnv, nil, &stdout, &stderr), flag)
		require.Contains(t, stderr.String(), want, flag)
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), flag)
		require.NotContains(t, stderr.String(), "two words", "the error must not contain a token")
		require.Empty(t, stdout.String())
	}
}

// A flag overrides the environment, which overrides the default. --help lists all settings.
func TestSettings(t *testing.T) {
	t.Parallel()
	env := map[string]string{"NOOP_INTERVAL": "0.5", "LISTEN": "unix:/x", "NOOP_TIMESTAMPS": "off", "RESUME_WINDOW": ""}
	cfg, _, err := parseConfig([]string{"--listen", "127.0.0.1:1"}, func(k string) (string, bool) { v, ok := env[k]; return v, ok })
	require.NoError(t, err)
	require.Equal(t, 500*time.Millisecond, cfg.NoopInterval)
	require.Equal(t, "127.0.0.1:1", cfg.Listen)
	require.False(t, cfg.NoopTimestamps)
	require.Equal(t, time.Minute, cfg.ResumeWindow)
	require.Positive(t, cfg.MaxConnections)
	for text, want := range map[string]time.Duration{"15": 15 * time.Second, "15s": 15 * time.Second, "0.5": 500 * time.Millisecond, "500ms": 500 * time.Millisecond} {
		var d time.Duration
		require.NoError(t, duration(&d, 0, time.Minute)(text))
		require.Equal(t, want, d)
	}
	var out bytes.Buffer
	require.Equal(t, exitOK, run([]string{"--help"}, noEnv, nil, &out, &out))
	new(Config).settings().VisitAll(func(f *pflag.Flag) {
		require.Contains(t, out.String(), "--"+f.Name)
		require.Contains(t, out.String(), variable(f.Name))
		require.NoError(t, f.Value.Set(f.DefValue), "the default of --%s", f.Name)
	})
	require.Equal(t, exitOK, run([]string{"--version"}, noEnv, nil, &out, &out))
}

// A port in use is not a usage error.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	s := startTest(t)
	var out, log bytes.Buffer
	require.Equal(t, exitError, run([]string{"--listen=" + s.addr}, noEnv, nil, &out, &log))
	var entry map[string]any
	require.NoError(t, json.Unmarshal(log.Bytes(), &entry))
	require.Contains(t, entry["error"], "choose another address")
}

func TestModelSettings(t *testing.T) {
	env := func(name string) (string, bool) {
		v, set := map[string]string{"MODEL_CHUNKS": "7", "MODEL_DELAY": "1", "SEED": "x", "MODEL_FAULT": "drop@1:0.5"}[name]
		return v, set
	}
	var c modelConfig
	verb, err := parseSettings(c.settings(), modelVariable, []string{"--delay=5ms", "--size=30"}, env)
	require.NoError(t, err)
	require.Empty(t, verb)
	require.Equal(t, 7, c.Chunks)
	require.Equal(t, "5ms", c.Delay.String())
	require.Len(t, c.Shares, 1)
	var repeated modelConfig
	_, err = parseSettings(repeated.settings(), modelVariable, []string{"--fault=drop@1:0.5", "--fault=reset:0.1"}, env)
	require.NoError(t, err)
	require.Len(t, repeated.Shares, 2)
}

func TestModelCommand(t *testing.T) {
	for _, test := range []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"model", "--help"}, exitOK, "MODEL_TTFT", ""},
		{[]string{"model", "--chunks=0"}, exitUsage, "", "--chunks=0"},
		{[]string{"model", "--fault=fall"}, exitUsage, "", "must be one of"},
		{[]string{"model", "--healthcheck", "--listen=127.0.0.1:1"}, exitError, "", "check the health of"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, test.code, run(test.args, noEnv, nil, &stdout, &stderr))
		require.Contains(t, stdout.String(), test.stdout)
		require.Contains(t, stderr.String(), test.stderr)
	}
}

func TestModelServesUntilASignal(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run([]string{"model", "--listen=127.0.0.1:0"}, noEnv, signals, &stdout, &stderr), stderr.String())
	require.Contains(t, stderr.String(), `"msg":"listening"`)
}
