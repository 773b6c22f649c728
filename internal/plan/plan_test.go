package plan

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func validPlan() Plan {
	p := Default()
	p.TestID, p.Prefix, p.BackendURL = "t", "soak-", "http://127.0.0.1:8080"
	return p
}

func TestDefaultPlan(t *testing.T) {
	t.Parallel()
	p := Default()
	require.NoError(t, p.Check())
	require.Equal(t, 1200, p.Iterations())
	require.Equal(t, 15*time.Second, p.Interval())
	require.Equal(t, 3595*time.Second, p.Hold())
	require.Equal(t, 239, p.MinNoopsPerStream())
	require.Equal(t, time.Second, p.LateLimit())
	p.Prefix = "a-"
	require.Equal(t, "a-0", p.ClientID(0))
}

func TestMaxOutage(t *testing.T) {
	t.Parallel()
	p := Default()
	_, ok := p.MaxOutage()
	require.False(t, ok, "without reconnects there must be no limit")
	p.Reconnect = true
	for seconds, want := range map[float64]time.Duration{30: 30 * time.Second, 2.5: 2500 * time.Millisecond, 0: defaultMaxOutage} {
		p.MaxOutageS = seconds
		got, ok := p.MaxOutage()
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	p.MaxOutageS = -1
	_, ok = p.MaxOutage()
	require.False(t, ok)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	checkEdits(t, validPlan, []planEdit{
		{"no edit", func(*Plan) {}, ""},
		{"no URL: the local backend", func(p *Plan) { p.BackendURL = "" }, ""},
		{"a path after the host", func(p *Plan) { p.BackendURL = "https://host/sse/" }, ""},
		{"a fraction of a second", func(p *Plan) { p.NoopInterval, p.Seconds = .25, 6 }, ""},
		{"no connections", func(p *Plan) { p.Connections = 0 }, "CONNECTIONS must be from 1 to 10000000, got 0"},
		{"a negative number of connections", func(p *Plan) { p.Connections = -7 }, "got -7"},
		{"too short", func(p *Plan) { p.Seconds = 5 }, "SECONDS must be over 5 and at most a year, because streams end 5 s before the end, got 5"},
		{"no interval", func(p *Plan) { p.NoopInterval = 0 }, "NOOP_INTERVAL must be at least 0.001 seconds, got 0"},
		{"an interval that is not a number", func(p *Plan) { p.NoopInterval = math.NaN() }, "NOOP_INTERVAL must be at least 0.001 seconds, got NaN"},
		{"an infinite interval", func(p *Plan) { p.NoopInterval = math.Inf(1) }, "SECONDS must be at least +Inf"},
		{"an interval under a millisecond", func(p *Plan) { p.NoopInterval = 1e-12 }, "NOOP_INTERVAL must be at least 0.001 seconds, got 1e-12"},
		{"too short for two noops", func(p *Plan) { p.Seconds = 30 }, "SECONDS must be at least 35, so that a stream receives two noops (NOOP_INTERVAL 15), got 30"},
		{"longer than a duration can be", func(p *Plan) { p.Seconds = math.MaxInt }, "SECONDS must be over 5"},
		{"compression that browsers request", func(p *Plan) { p.AcceptEncoding = "browser" }, ""},
		{"another compression", func(p *Plan) { p.AcceptEncoding = "br" }, `ACCEPT_ENCODING must be none, gzip or browser, got "br"`},
		{"HTTP/2 by prior knowledge", func(p *Plan) { p.HTTPVersion, p.PerConnection = "2", 100 }, ""},
		{"an unknown HTTP version", func(p *Plan) { p.HTTPVersion = "3" }, `HTTP_VERSION must be auto, 1.1 or 2, got "3"`},
		{"more streams on a connection than HTTP/2 has", func(p *Plan) { p.PerConnection = 65536 }, "STREAMS_PER_CONNECTION must be a whole number up to 65535, or 0 (limit of the server), got 65536"},
		{"no runners", func(p *Plan) { p.Runners = 0 }, "RUNNERS must be at least 1, got 0"},
		{"no connections for a virtual user", func(p *Plan) { p.ConnectionsPerVU = 0 }, "CONNECTIONS_PER_VU must be at least 1, got 0"},
		{"the maximum of an int for a virtual user", func(p *Plan) { p.ConnectionsPerVU = math.MaxInt }, "RUNNERS must be at most the number of virtual users, 1, got 2"},
		{"more runners than virtual users", func(p *Plan) { p.Connections, p.ConnectionsPerVU, p.Runners = 10, 10, 2 }, "RUNNERS must be at most the number of virtual users, 1, got 2"},
		{"no lateness", func(p *Plan) { p.LateMS = 0 }, "LATE_MS must be at least 1 ms, and at most a year, got 0"},
		{"lateness beyond a duration", func(p *Plan) { p.LateMS = math.MaxInt }, "LATE_MS must be at least 1 ms, and at most a year, got 9"},
		{"maximum outage 0, which means the default", func(p *Plan) { p.MaxOutageS = 0 }, ""},
		{"no limit on outages", func(p *Plan) { p.MaxOutageS = -1 }, ""},
		{"an outage below -1", func(p *Plan) { p.MaxOutageS = -2 }, "MAX_OUTAGE must be positive seconds up to a year, or -1 (no limit), got -2"},
		{"an infinite outage", func(p *Plan) { p.MaxOutageS = math.Inf(1) }, "MAX_OUTAGE must be positive seconds up to a year, or -1 (no limit), got +Inf"},
		{"an outage that is not a number", func(p *Plan) { p.MaxOutageS = math.NaN() }, "(no limit), got NaN"},
		{"a prefix with a blank", func(p *Plan) { p.Prefix = "a b" }, "PREFIX must consist of"},
		{"a prefix with a newline at its end", func(p *Plan) { p.Prefix = "a\n" }, "PREFIX must consist of"},
		{"a prefix that is too long", func(p *Plan) { p.Prefix = strings.Repeat("a", 61) }, "PREFIX and the number of a client must have at most 64 characters together"},
		{"a test id with a path", func(p *Plan) { p.TestID = "../x" }, "TESTID must be the name of a folder"},
		{"a test id of two dots", func(p *Plan) { p.TestID = ".." }, "TESTID must be the name of a folder"},
		{"a test id that is too long for archives", func(p *Plan) { p.TestID = strings.Repeat("x", 201) }, "TESTID must have at most 200 characters, got 201"},
		{"a test id of one dot", func(p *Plan) { p.TestID = "." }, "TESTID must be the name of a folder"},
		{"an invalid URL", func(p *Plan) { p.BackendURL = "http://[::1" }, "BACKEND_URL must be the URL of a service"},
		{"a negative end timeout", func(p *Plan) { p.EndTimeoutS = -1 }, "END_TIMEOUT must be positive seconds up to a year, or 0 (the default), got -1"},
		{"an end timeout that is not a number", func(p *Plan) { p.EndTimeoutS = math.NaN() }, "(the default), got NaN"},
		{"an end timeout of over a year", func(p *Plan) { p.EndTimeoutS = 1e9 }, "(the default), got 1e+09"},
		{"a host alone", func(p *Plan) { p.BackendURL = "host:80" }, "must begin with http://"},
		{"another scheme", func(p *Plan) { p.BackendURL = "ftp://host" }, "must begin with http://"},
		{"no host", func(p *Plan) { p.BackendURL = "http:///path" }, "name a host"},
		{"a query", func(p *Plan) { p.BackendURL = "http://h/?a=b" }, "must not have a query"},
		{"a password", func(p *Plan) { p.BackendURL = "http://u:p@h" }, "must not have a query, a fragment, a user name or a password"},
		{"a reference", func(p *Plan) { p.ControlURL = "http://[fd00::2]:7070" }, ""},
		{"a reference without a scheme", func(p *Plan) { p.ControlURL = "10.0.0.2:7070" }, "CONTROL_URL must be the address of a reference server"},
		{"a reference with TLS", func(p *Plan) { p.ControlURL = "https://h:7070" }, "without TLS"},
		{"a reference with a password", func(p *Plan) { p.ControlURL = "http://u:p@h:7070" }, "CONTROL_URL must be"},
		{"a reference with blanks", func(p *Plan) { p.ControlURL = " http://h:7070" }, "CONTROL_URL must be"},
		{"a reference that is too long for a shard", func(p *Plan) { p.ControlURL = "http://h/" + strings.Repeat("a", 5000) }, "CONTROL_URL must be"},
	})
}

// Callers can use the values of a valid plan without further checks.
func FuzzPlan(f *testing.F) {
	ok, err := json.Marshal(validPlan())
	require.NoError(f, err)
	f.Add(string(ok))
	f.Add(`{"connections":1,"seconds":9223372036854775807,"noop_interval_s":1e-300,"runners":1,"connections_per_vu":1,"late_ms":1}`)
	f.Add(`{"connections":9223372036854775807,"seconds":6,"noop_interval_s":0.0000000001,"runners":1,"connections_per_vu":9223372036854775807,"late_ms":9223372036854775807}`)
	f.Add(`{"connections":3,"seconds":60,"noop_interval_s":1,"runners":1,"connections_per_vu":1,"late_ms":1,"backend_url":"http://h:99999"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var p Plan
		if json.Unmarshal([]byte(text), &p) != nil || p.Check() != nil {
			return
		}
		require.Positive(t, p.Interval())
		require.Positive(t, p.Hold())
		require.Positive(t, p.LateLimit())
		require.Positive(t, p.EndTimeout())
		require.Greater(t, p.Hold(), p.Interval())
		require.GreaterOrEqual(t, p.MinNoopsPerStream(), 2)
		require.GreaterOrEqual(t, p.Iterations(), p.Runners)
		require.LessOrEqual(t, p.Iterations(), p.Connections)
		require.LessOrEqual(t, len(p.ClientID(p.Connections-1)), 64)
	})
}

func TestNumberInvertsClientID(t *testing.T) {
	t.Parallel()
	p := Default()
	for _, prefix := range []string{"", "d-", "7"} {
		p.Prefix, p.Connections = prefix, 12
		for n := range p.Connections {
			got, ok := p.Number(p.ClientID(n))
			require.True(t, ok)
			require.Equal(t, n, got)
		}
		for _, foreign := range []string{"", "x", "12", "-1", "+1", "01", "1 ", "1.0", "99999999999999999999"} {
			_, ok := p.Number(prefix + foreign)
			require.False(t, ok, prefix+foreign)
		}
	}
	_, ok := p.Number("d-1")
	require.False(t, ok)
}

func TestRunnersUseTheServicesInTurn(t *testing.T) {
	t.Parallel()
	p := Default()
	p.BackendURL, p.Runners, p.Connections = "http://a/,http://b", 3, 100
	require.NoError(t, p.Check())
	require.Equal(t, []string{"http://a", "http://b", "http://a"}, []string{p.BackendOf(1), p.BackendOf(2), p.BackendOf(3)})
	require.Equal(t, 34, p.PerRunner())
	require.Equal(t, []int{100, 67, 34}, []int{p.PerBackend(1), p.PerBackend(2), p.PerBackend(3)})
	p.Runners = 1
	require.ErrorContains(t, p.Check(), "RUNNERS must be at least the number of services in BACKEND_URL, 2, got 1")
	p.Runners, p.BackendURL = 2, "http://a,b"
	require.ErrorContains(t, p.Check(), `BACKEND_URL must begin with http:// or https:// and name a host, got "b"`)
}

// 100 clients, 6 per virtual user, need 17 users; the last one has 4.
func TestShareCountsTheClientsOfARunner(t *testing.T) {
	t.Parallel()
	p := Default()
	p.Connections, p.ConnectionsPerVU = 100, 6
	for _, want := range [][]int{{100}, {52, 48}, {36, 34, 30}} {
		p.Runners = len(want)
		for i, connections := range want {
			require.Equal(t, connections, p.Share(i+1))
		}
	}
	p.Connections, p.Runners = 7, 3
	require.Equal(t, []int{6, 1, 0}, []int{p.Share(1), p.Share(2), p.Share(3)})
}

func TestStreamsPerVU(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ connections, runners, want int }{
		{1, 1, 1}, {100, 2, 6}, {1200, 2, 50}, {10_000, 2, 50}, {100_000, 6, 166},
	} {
		p := Default()
		p.Connections, p.Runners = c.connections, c.runners
		require.Equal(t, c.want, p.StreamsPerVU(), "%+v", c)
	}
}

func TestStreamsOfAVirtualUserShareConnections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		http                                string
		perVU, perConnection, streams, want int
	}{
		{"", 50, 0, 600, 600}, {"1.1", 50, 10, 600, 600}, {HTTP2, 50, 0, 600, 12}, {HTTP2, 50, 0, 601, 13}, {HTTP2, 50, 20, 600, 36},
		{HTTP2, 1000, 0, 100_000, 1000}, {HTTP2, 1000, 250, 100_000, 400}, {HTTP2, 250, 100, 260, 4}, {HTTP2, 1, 0, 7, 7}, {HTTP2, 50, 0, 0, 0},
	} {
		p := Plan{HTTPVersion: c.http, ConnectionsPerVU: c.perVU, PerConnection: c.perConnection}
		require.Equal(t, c.want, p.Sockets(c.streams), "%+v", c)
	}
}

func TestEndTimeout(t *testing.T) {
	t.Parallel()
	p := Default()
	require.Equal(t, 22500*time.Millisecond, p.EndTimeout(), "the default must be 1.5 noop intervals")
	p.NoopInterval = 1
	require.Equal(t, 15*time.Second, p.EndTimeout())
	p.EndTimeoutS = .5
	require.Equal(t, time.Second/2, p.EndTimeout())
}

// A planEdit changes a valid plan. want is a part of the error of Check for the changed plan; "": no error.
type planEdit struct {
	name string
	edit func(p *Plan)
	want string
}

func checkEdits(t *testing.T, base func() Plan, all []planEdit) {
	t.Helper()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := base()
			c.edit(&p)
			err := p.Check()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}
