package sse

import (
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	"gopkg.in/guregu/null.v3"
)

// The time to connect excludes the wait for the option rps.
func TestOptionRPSLimitsStreamsAndSecondRequests(t *testing.T) {
	t.Parallel()
	const interval = 100 * time.Millisecond
	for name, tt := range map[string]struct {
		script   string
		requests int
	}{
		"EventSource": {`
			for (let i = 0; i < 4; i++) {
				const s = new EventSource(url, { reconnect: false, connectTimeout: "1m" });
				s.onopen = () => log.push(s.connectMs < 1000);
			}`, 4},
		"a reconnect": {`
			const s = new EventSource(url, { reconnectDelay: 1 });
			s.onopen = () => { if (log.push(true) === 4) s.close(); };`, 4},
		"open": {`for (let i = 0; i < 4; i++) log.push(sse.open(url, { timeout: "1m" }, () => {}).error === "");`, 4},
		"a second request": {`
			for (let i = 0; i < 2; i++) {
				const s = new EventSource(url + "/hold", { then: { url: "/", ok: [200] } });
				s.addEventListener("then", () => { log.push(true, true); s.close(); });
			}`, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVU(t)
			v.state.RPSLimit = rate.NewLimiter(rate.Every(interval), 1)
			v.set("url", serve(t, func(p *peer) {
				if p.req.Method == "POST" {
					p.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					return
				}
				p.send(streamHead + "retry: 1\ndata: 0\n\n")
				if p.req.URL.Path == "/hold" {
					p.hold()
				}
			}))
			start := time.Now()
			require.Equal(t, "true true true true", v.log(tt.script))
			require.GreaterOrEqual(t, time.Since(start), time.Duration(tt.requests-1)*interval)
		})
	}
}

func TestStreamThatWaitsForTheOptionRPSCanBeClosed(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"closed":               `const s = new EventSource(url); s.onerror = () => log.push("error"); setTimeout(() => { s.close(); log.push(s.readyState); }, 1);`,
		"closed by open":       `sse.open(url, (c) => { c.setTimeout(() => { c.close(); log.push(2); }, 1); });`,
		"with the iteration":   `new EventSource(url); cancel(); log.push(2)`,
		"with the VU, in open": `log.push(sse.open(url, (c) => c.setTimeout(cancel, 1)).error.startsWith("interrupted") ? 2 : "no");`,
	} {
		v := newVU(t)
		v.set("cancel", v.CancelContext)
		v.state.RPSLimit = rate.NewLimiter(rate.Every(time.Hour), 1)
		require.True(t, v.state.RPSLimit.Allow())
		v.set("url", "http://127.0.0.1:1/")
		v.set("setTimeout", func(fn func() error, _ int) { v.VU.RegisterCallback()(fn) })
		require.Equal(t, "2", v.log(script), name)
	}
}

func TestOptionHTTPDebugLogsRequestsAndResponseHeads(t *testing.T) {
	t.Parallel()
	for option, body := range map[string]string{"headers": "", "full": "{}"} {
		v := newVU(t)
		logger, entries := test.NewNullLogger()
		v.state.Logger, v.state.Options.HTTPDebug = logger, null.StringFrom(option)
		v.set("url", serve(t, func(p *peer) {
			if p.n == 0 {
				p.send("HTTP/1.1 307 Temporary Redirect\r\nLocation: /to\r\nContent-Length: 0\r\n\r\n")
				return
			}
			p.send(streamHead + "data: hidden\n\n")
		}))
		v.mustRun(`new EventSource(url + "/from", { method: "POST", body: "{}", headers: { X: "1" }, reconnect: false, tags: { device: "d1" } })`)
		var all []string
		for _, e := range entries.AllEntries() {
			all = append(all, e.Message)
			require.Equal(t, "http-debug", e.Data["source"])
			require.Equal(t, "d1", e.Data["device"])
			require.NotEmpty(t, e.Data["request_id"])
		}
		require.Len(t, all, 4, "two requests and two responses")
		require.Regexp(t, `^Request:\nPOST /from HTTP/1\.1\nHost: [^\r]*\nX: 1[^\r]*\n\n`+body+`\n$`, all[0])
		require.Equal(t, "Response:\nHTTP/1.1 307 Temporary Redirect\nContent-Length: 0\nLocation: /to\n\n", all[1])
		require.True(t, strings.HasPrefix(all[2], "Request:\nPOST /to HTTP/1.1\n"), all[2])
		require.Equal(t, "Response:\nHTTP/1.1 200 OK\nContent-Type: text/event-stream\n\n", all[3])
	}
}
