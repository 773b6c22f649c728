package soak

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const unnumbered = `var s = service({name: "mine", connect: {url: "{base}"}, message: "unchecked", TOKEN});`

func settingsOf(t *testing.T, environment, script string) (string, error) {
	t.Helper()
	rt, _ := newVU(t)
	_, err := rt.VU.Runtime().RunString(`__ENV = Object.assign({}, {BACKEND_URL: " HTTP://Host/ ", ` + environment + `});` + script)
	if err != nil {
		return "", err
	}
	return js(t, rt, `JSON.stringify(settings(s, typeof stated == "undefined" ? undefined : stated))`), nil
}

func TestScriptSettings(t *testing.T) {
	t.Parallel()
	declared := strings.Replace(unnumbered, "TOKEN", "", 1)
	got, err := settingsOf(t, "", declared)
	require.NoError(t, err)
	require.JSONEq(t, `{"backendUrl": "http://host", "connections": 0, "connectionsPerVU": 1, "seconds": 3600, "noopInterval": 15, "prefix": "", "testid": "",
		"runners": 1, "lateMs": 1000, "reconnect": false, "endTimeout": 22.5, "idleTimeout": 37500, "teardown": 93, "topics": 0, "publishRate": 0, "tokenTtl": 0,
		"acceptEncoding": "none", "httpVersion": "auto", "streamsPerConnection": 0, "followRedirects": false, "messageKB": 0}`, got)
	got, err = settingsOf(t, `SECONDS: "60", NOOP_INTERVAL: "2", RECONNECT: "true", HTTP_VERSION: "2", CONNECTIONS: "7"`, declared+`var stated = {connections: 5, reconnect: false}`)
	require.NoError(t, err)
	for _, want := range []string{`"seconds":60`, `"noopInterval":2`, `"reconnect":false`, `"httpVersion":"2"`, `"connections":5`, `"idleTimeout":5000`, `"endTimeout":15`} {
		require.Contains(t, got, want)
	}
}

func TestInvalidSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ environment, token, want string }{
		{`SECONDS: "5"`, "", "SECONDS must be over 5, because streams end 5 s before the end, and at most a year, got 5"},
		{`NOOP_INTERVAL: "0"`, "", "NOOP_INTERVAL must be at least 0.001 seconds, got 0"},
		{`NOOP_INTERVAL: "x"`, "", `NOOP_INTERVAL must be a number of seconds, or a duration such as 90s or 10m, got "x"`},
		{`CONNECTIONS: "-1"`, "", "CONNECTIONS must be from 1 to 10000000, got -1"},
		{`RUNNERS: "1.5"`, "", `RUNNERS must be a whole number, got "1.5"`},
		{`RECONNECT: "yes"`, "", `RECONNECT must be 1 or 0, got "yes"`},
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
func TestDocumentSettings(t *testing.T) {
	t.Parallel()
	p := newPlan()
	p.Seconds, p.Service = 600, "mine"
	rt, r := newVU(t)
	require.NoError(t, rt.VU.Runtime().Set("variables", p.Document(map[string]string{"STEP": "7", "STAGES": "1, 2", "HOLD_SECONDS": "2m"}).Variables()))
	require.Equal(t, "600 x 7", js(t, rt, `__ENV = Object.assign({SECONDS: "99", STEP: "3"}, variables);`+strings.Replace(unnumbered, "TOKEN", "", 1)+
		`var c = settings(s, {prefix: "x"}); [c.seconds, c.prefix, setting("STEP")].join(" ")`))
	require.Equal(t, 600, r.plan.Seconds)
	require.JSONEq(t, `{"name": "full", "runners": 1, "values": {"STEP": 7, "STAGES": [1, 2], "HOLD_SECONDS": 120, "GAUGE": "", "BIG": 2000000},
		"parameters": {"STEP": "7", "STAGES": "1,2", "HOLD_SECONDS": "120", "GAUGE": "", "BIG": "2000000"}}`,
		js(t, rt, `JSON.stringify(profile({full: {STEP: 1, STAGES: [5], HOLD_SECONDS: 1, GAUGE: "", BIG: 2e6}}))`))
	require.Equal(t, "true 3", js(t, rt, `[1, 2].concat(profile({full: {STAGES: [5]}}).values.STAGES).length == 4, [Array.isArray(profile({full: {STAGES: [5]}}).values.STAGES), profile({full: {STAGES: [5]}}).values.STAGES.reduce((a, b) => a + b)].join(" ")`))
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	const profiles = `profile({full: {RATE: 100, STAGES: [10, 20], MAX_GROWTH: 200}, smoke: {RATE: 5, STAGES: [1], MAX_GROWTH: 200}})`
	for environment, want := range map[string]string{
		``: `full {"RATE":100,"STAGES":[10,20],"MAX_GROWTH":200}`, `PROFILE: "smoke", RATE: "7.5"`: `smoke {"RATE":7.5,"STAGES":[1],"MAX_GROWTH":200}`,
		`MAX_GROWTH: "-1", STAGES: "3,4", RATE: ""`: `full {"RATE":100,"STAGES":[3,4],"MAX_GROWTH":-1}`,
	} {
		rt, _ := newVU(t)
		got := js(t, rt, `__ENV = {`+environment+`}; var p = `+profiles+`; p.name + " " + JSON.stringify({RATE: p.values.RATE, STAGES: p.values.STAGES, MAX_GROWTH: p.values.MAX_GROWTH})`)
		require.Equal(t, want, got)
	}
	for environment, want := range map[string]string{
		`PROFILE: "tiny"`: `PROFILE must be smoke or full, got "tiny"`, `RATE: "-1"`: `RATE must be at least 0, got "-1"`,
		`RATE: "1s"`: `RATE must be a number, got "1s"`, `STAGES: "5,0"`: `STAGES must be positive whole numbers separated by commas, such as 20,50,100, got "5,0"`, `RUNNERS: "x"`: `RUNNERS must be a whole number, got "x"`,
		`K6_SOAK_PLAN: "{"`: "read K6_SOAK_PLAN",
	} {
		rt, _ := newVU(t)
		_, err := rt.VU.Runtime().RunString(`__ENV = {` + environment + `};` + profiles)
		require.ErrorContains(t, err, want)
	}
}
