package soak

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

const unnumbered = `var s = service({name: "mine", connect: {url: "{base}"}, message: "unchecked", TOKEN});`

func settingsOf(t *testing.T, environment, script string) (string, error) {
	t.Helper()
	rt, _ := newVU(t)
	_, err := rt.VU.Runtime().RunString(`__ENV = Object.assign({}, {BACKEND_URL: " HTTP://Host/ ", ` + environment + `});` + script)
	if err != nil {
		return "", err
	}
	return js(t, rt, `JSON.stringify(settings(s, typeof explicit == "undefined" ? undefined : explicit))`), nil
}

func TestSettingsReadEnvironmentAndScript(t *testing.T) {
	t.Parallel()
	declared := strings.Replace(unnumbered, "TOKEN", "", 1)
	got, err := settingsOf(t, "", declared)
	require.NoError(t, err)
	require.JSONEq(t, `{"backendUrl": "http://host", "connections": 0, "connectionsPerVU": 1, "seconds": 3600, "noopInterval": 15, "prefix": "", "testid": "",
		"runners": 1, "lateMs": 1000, "reconnect": false, "endTimeout": 22.5, "idleTimeout": 37500, "teardown": 93, "topics": 0, "publishRate": 0, "tokenTtl": 0,
		"acceptEncoding": "none", "httpVersion": "auto", "streamsPerConnection": 0, "followRedirects": false, "messageKB": 0}`, got)
	got, err = settingsOf(t, `SECONDS: "60", NOOP_INTERVAL: "2", RECONNECT: "true", HTTP_VERSION: "2", CONNECTIONS: "7"`, declared+`var explicit = {connections: 5, reconnect: false}`)
	require.NoError(t, err)
	for _, want := range []string{`"seconds":60`, `"noopInterval":2`, `"reconnect":false`, `"httpVersion":"2"`, `"connections":5`, `"idleTimeout":5000`, `"endTimeout":15`} {
		require.Contains(t, got, want)
	}
}

func TestInvalidSettingsAreRejected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ environment, token, want string }{
		{`CONNECTIONS: "-1"`, "", "CONNECTIONS must be from 1 to 10000000, got -1"},
		{`RUNNERS: "1.5"`, "", `RUNNERS must be a whole number, got "1.5"`},
		{`TOKEN_TTL: "-1"`, "", "TOKEN_TTL must be a whole number of seconds up to a year, or 0 (not passed), got -1"},
		{`TOKEN_TTL: "30"`, "", "TOKEN_TTL is 30, but the description has no token()"},
		{`TOKEN_TTL: "30"`, `token: () => "t"`, "TOKEN_TTL is 30, but token() of the description has no parameter"},
		{`BACKEND_URL: ""`, "", "BACKEND_URL is missing"},
		{`BACKEND_URL: "http://u:p@h"`, "", "BACKEND_URL must not have a query"},
	} {
		rt, _ := newVU(t)
		_, err := rt.VU.Runtime().RunString(`__ENV = Object.assign({}, {BACKEND_URL: "http://h", ` + c.environment + `});` + strings.Replace(unnumbered, "TOKEN", c.token, 1) + `settings(s)`)
		require.ErrorContains(t, err, c.want)
	}
	_, err := settingsOf(t, `SERVICE: "mine", TOKEN_TTL: "30"`, strings.Replace(unnumbered, "TOKEN", `token: (ttl) => "t"`, 1))
	require.NoError(t, err)
}

// The document of `soak run` has precedence over variables.
func TestDocumentReplacesVariables(t *testing.T) {
	t.Parallel()
	p := newPlan()
	p.Seconds, p.Service = 600, "mine"
	rt, r := newVU(t)
	require.NoError(t, rt.VU.Runtime().Set("variables", plan.Document{Plan: p, Settings: map[string]string{"STEP": "7", "LEVELS": "1, 2", "DELIVERY_SECONDS": "2m"}}.Variables()))
	require.Equal(t, "600 x 7", js(t, rt, `__ENV = Object.assign({SECONDS: "99", STEP: "3"}, variables);`+strings.Replace(unnumbered, "TOKEN", "", 1)+
		`var c = settings(s, {prefix: "x"}); [c.seconds, c.prefix, setting("STEP")].join(" ")`))
	require.Equal(t, 600, r.plan.Seconds)
	require.JSONEq(t, `{"name": "full", "runners": 1, "values": {"LEVELS": [1, 2], "DELIVERY_SECONDS": 120, "LATE_MS": 2000000},
		"parameters": {"LEVELS": "1,2", "DELIVERY_SECONDS": "120", "LATE_MS": "2000000"}}`,
		js(t, rt, `JSON.stringify(profile("fanout", {full: {LEVELS: [5], DELIVERY_SECONDS: 1, LATE_MS: 2e6}}))`))
	require.Equal(t, "true 3 4", js(t, rt, `var levels = profile("fanout", {full: {LEVELS: [5]}}).values.LEVELS; [Array.isArray(levels), levels.reduce((a, b) => a + b), [1, 2].concat(levels).length].join(" ")`))
}

func TestEnvironmentReplacesValuesOfAProfile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ suite, values, environment, want string }{
		{"rampup", `STAGES: [10, 20], MIN_RATE: 100`, ``, `full {"STAGES":[10,20],"MIN_RATE":100}`},
		{"rampup", `STAGES: [10, 20], MIN_RATE: 100`, `PROFILE: "smoke", MIN_RATE: "7.5"`, `smoke {"STAGES":[10,20],"MIN_RATE":7.5}`},
		{"rampup", `STAGES: [10, 20], MIN_RATE: 100`, `STAGES: "3,4", MIN_RATE: ""`, `full {"STAGES":[3,4],"MIN_RATE":100}`},
		{"slow", `MAX_GROWTH: 200, CUT_SLOW: -1, GAUGE: ""`, `MAX_GROWTH: "-1", CUT_SLOW: "0", GAUGE: "pid:1"`, `full {"MAX_GROWTH":-1,"CUT_SLOW":0,"GAUGE":"pid:1"}`},
		{"finite", `HTTP_VERSION: "auto", ACCEPT_ENCODING: "none"`, `HTTP_VERSION: "2", ACCEPT_ENCODING: "none"`, `full {"HTTP_VERSION":"2","ACCEPT_ENCODING":"none"}`},
		{"churn", `SECONDS: 60, NOOP_INTERVAL: 1`, `SECONDS: "2m", NOOP_INTERVAL: "500ms"`, `full {"SECONDS":120,"NOOP_INTERVAL":0.5}`},
	} {
		rt, _ := newVU(t)
		got := js(t, rt, `__ENV = {`+c.environment+`}; var v = {`+c.values+`}; var p = profile("`+c.suite+`", {full: v, smoke: v});
			p.name + " " + JSON.stringify(p.values, Object.keys(v))`)
		require.Equal(t, c.want, got)
	}
}

// The table of settings defines the bounds of a script's settings.
func TestInvalidProfilesAreRejected(t *testing.T) {
	t.Parallel()
	const list = "must be positive whole numbers separated by commas, such as 20,50,100, got"
	for _, c := range []struct{ suite, name, text, want string }{
		{"rampup", "PROFILE", "tiny", `PROFILE must be smoke or full, got "tiny"`},
		{"rampup", "RUNNERS", "x", `RUNNERS must be a whole number, got "x"`},
		{"rampup", "K6_SOAK_PLAN", "{", "read K6_SOAK_PLAN"},
		{"rampup", "MIN_RATE", "-1", "MIN_RATE must be at least 0, got -1"},
		{"rampup", "MIN_RATE", "1e10", "MIN_RATE must be at most 1000000000, got 1e+10"},
		{"rampup", "MIN_RATE", "1s", `MIN_RATE must be a number, got "1s"`},
		{"rampup", "STAGES", "5,0", `STAGES ` + list + ` "5,0"`},
		{"rampup", "OWN", "5", "OWN is not a setting of the suite rampup; read variables of your own with setting()"},
		{"rampup", "TIMEOUT_SECONDS", "0", "TIMEOUT_SECONDS must be over 0, got 0"},
		{"rampup", "TIMEOUT_SECONDS", "1e300", "TIMEOUT_SECONDS must be at most 1000000000, got 1e+300"},
		{"rampup", "MAX_FAILED_PERCENT", "101", "MAX_FAILED_PERCENT must be from 0 to 100, got 101"},
		{"rampup", "MIN_ANSWERED_PERCENT", "120", "MIN_ANSWERED_PERCENT must be from 0 to 100, got 120"},
		{"rampup", "STAGE_SECONDS", "0.001", "STAGE_SECONDS must be at least 1, got 0.001"},
		{"rampup", "SEARCH", "2", "SEARCH must be 0 or 1, got 2"},
		{"rampup", "MAX_CONNECTIONS", "0", "MAX_CONNECTIONS must be at least 1, got 0"},
		{"burst", "SEQUENCE", "0", "SEQUENCE must be at least 1, got 0"},
		{"burst", "SEQUENCE", "2000000000", "SEQUENCE must be at most 1000000000, got 2000000000"},
		{"burst", "SEQUENCE", "2.5", `SEQUENCE must be a whole number, got "2.5"`},
		{"capacity", "STEP", "0", "STEP must be at least 1, got 0"},
		{"churn", "MEAN_HOLD", "0.01", "MEAN_HOLD must be at least 0.1, got 0.01"},
		{"churn", "NOOP_INTERVAL", "0", "NOOP_INTERVAL must be at least 0.001 seconds, got 0"},
		{"cluster", "CLUSTER_SIZE", "1", "CLUSTER_SIZE must be at least 2, got 1"},
		{"cluster", "ROUNDS", "0", "ROUNDS must be at least 1, or 2 to separate a difference from chance, got 0"},
		{"cluster", "ROUND_SECONDS", "0", "ROUND_SECONDS must be over 0, or at least 2 to find the limiting resource, got 0"},
		{"finite", "ARRIVAL", "uneven", `ARRIVAL must be constant or poisson, got "uneven"`},
		{"finite", "RATE", "2e6", "RATE must be from 0 to 1000000, got 2e+06"},
		{"finite", "ABANDON", "101", "ABANDON must be from 0 to 100, got 101"},
		{"finite", "ABANDON_BY", "rst", `ABANDON_BY must be fin, reset or vanish, got "rst"`},
		{"finite", "ACCEPT_ENCODING", "br", `ACCEPT_ENCODING must be none, gzip or browser, got "br"`},
		{"finite", "HTTP_VERSION", "3", `HTTP_VERSION must be auto, 1.1 or 2, got "3"`},
		{"fanout", "BROADCASTS", "1.5", `BROADCASTS must be a whole number, got "1.5"`},
		{"handshake", "MAX_FAILED_PERCENT", "101", "MAX_FAILED_PERCENT must be from 0 to 100, got 101"},
		{"handshake", "WORKERS", "1.5", `WORKERS must be a whole number, got "1.5"`},
		{"slow", "SLOW_PERCENT", "51", "SLOW_PERCENT must be from 1 to 50 percent, got 51"},
		{"slow", "CUT_SLOW", "2", "CUT_SLOW must be 1 if the service has to disconnect slow streams, 0 if it must not, or -1 (either), got 2"},
		{"slow", "MAX_GROWTH", "-2", "MAX_GROWTH must be at least 0, or -1 (no limit), got -2"},
		{"storm", "MAX_OPEN_LATE", "0.5", `MAX_OPEN_LATE must be a whole number, got "0.5"`},
		{"throughput", "VOLUME_CONCURRENCY", "0", "VOLUME_CONCURRENCY must be at least 1, got 0"},
		{"throughput", "LEVEL_SECONDS", "0", "LEVEL_SECONDS must be over 0, got 0"},
		{"throughput", "SLOWEST", "0", "SLOWEST must be over 0, got 0"},
		{"upload", "SEQUENCE_MB", "0", "SEQUENCE_MB must be at least one byte, got 0"},
		{"vanish", "STEADY_SECONDS", "1", "STEADY_SECONDS must be at least 2, because the gauge is read once a second, got 1"},
	} {
		rt, _ := newVU(t)
		key := c.name
		if key == "PROFILE" || key == "RUNNERS" || key == "K6_SOAK_PLAN" { // variables of each script
			key = "MIN_RATE"
		}
		_, err := rt.VU.Runtime().RunString(`__ENV = {` + c.name + `: "` + c.text + `"}; profile("` + c.suite + `", {full: {` + key + `: 1}})`)
		require.ErrorContains(t, err, c.want)
	}
}
