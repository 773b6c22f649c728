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

func TestSettingsOfAScript(t *testing.T) {
	t.Parallel()
	declared := strings.Replace(unnumbered, "TOKEN", "", 1)
	got, err := settingsOf(t, "", declared)
	require.NoError(t, err)
	require.JSONEq(t, `{"backendUrl": "http://host", "connections": 0, "connectionsPerVU": 1, "seconds": 3600, "noopInterval": 15, "prefix": "", "testid": "",
		"runners": 1, "lateMs": 1000, "reconnect": false, "endTimeout": 22.5, "idleTimeout": 37500, "teardown": 93, "topics": 0, "publishRate": 0, "tokenTtl": 0,
		"acceptEncoding": "none", "httpVersion": "auto", "streamsPerConnection": 0, "followRedirects": false}`, got)
	got, err = settingsOf(t, `SECONDS: "60", NOOP_INTERVAL: "2", RECONNECT: "true", HTTP_VERSION: "2", CONNECTIONS: "7"`, declared+`var stated = {connections: 5, reconnect: false}`)
	require.NoError(t, err)
	for _, want := range []string{`"seconds":60`, `"noopInterval":2`, `"reconnect":false`, `"httpVersion":"2"`, `"connections":5`, `"idleTimeout":5000`, `"endTimeout":15`} {
		require.Contains(t, got, want)
	}
}

func TestSettingsThatAreRejected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ environment, token, want string }{
		{`SECONDS: "5"`, "", "SECONDS is 5: it must be over 5"},
		{`NOOP_INTERVAL: "0"`, "", "NOOP_INTERVAL is 0: it must be over 0"},
		{`NOOP_INTERVAL: "x"`, "", `NOOP_INTERVAL is "x": it must be a number`},
		{`CONNECTIONS: "-1"`, "", "CONNECTIONS is -1"},
		{`RUNNERS: "1.5"`, "", `RUNNERS is "1.5": it must be a whole number`},
		{`RECONNECT: "yes"`, "", `RECONNECT is "yes": it must be 1 or 0`},
		{`TOKEN_TTL: "-1"`, "", "TOKEN_TTL is -1: it must be a whole number of seconds"},
		{`TOKEN_TTL: "30"`, "", "TOKEN_TTL is 30, but the description has no token()"},
		{`TOKEN_TTL: "30"`, `token: () => "t"`, "TOKEN_TTL is 30, but token() of the description has no parameter"},
		{`BACKEND_URL: ""`, "", "BACKEND_URL is missing"},
		{`BACKEND_URL: "http://u:p@h"`, "", "BACKEND_URL must not carry a query"},
	} {
		rt, _ := newVU(t)
		_, err := rt.VU.Runtime().RunString(`__ENV = Object.assign({}, {BACKEND_URL: "http://h", ` + c.environment + `});` + strings.Replace(unnumbered, "TOKEN", c.token, 1) + `settings(s)`)
		require.ErrorContains(t, err, c.want)
	}
	_, err := settingsOf(t, `TOKEN_TTL: "30"`, strings.Replace(unnumbered, "TOKEN", `token: (ttl) => "t"`, 1))
	require.NoError(t, err)
}
