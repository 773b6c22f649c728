package sse

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serveRequests starts a server that responds with one event, which describes the request, and ends the stream.
func serveRequests(t *testing.T) string {
	return serve(t, func(p *peer) {
		body, _ := io.ReadAll(p.req.Body)
		p.send(streamHead + fmt.Sprintf("retry: 1\nid: %d\ndata: %s %s %s %s%s\n\n", p.n, p.req.Method, p.req.URL.Path,
			p.req.Header.Get("Authorization"), p.req.Header.Get("Last-Event-Id"), body))
	})
}

func TestEachReconnectRenewsItsRequest(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	v.set("url", serveRequests(t))
	require.Equal(t, "GET /a 0 |GET /a 1 0|GET /b 2 1|GET /b 2 2|true", v.log(`
		let n = 0;
		const s = new EventSource(url + "/a", { headers: { Authorization: "0" }, renew() {
			if (this !== s) throw new Error("this is not the source");
			return [{ headers: { Authorization: "1" } }, { url: url + "/b", headers: { Authorization: "2" } }, undefined][n++];
		} });
		s.onmessage = (e) => {
			log.push(e.data);
			if (n === 3) { log = [log.join("|") + "|" + (s.url === url + "/b")]; s.close(); }
		};
	`))
	v.set("url", serveRequests(t))
	require.Equal(t, "POST /  first,POST /  0second", v.log(`
		let m = 0;
		const p = new EventSource(url, { method: "POST", body: "first", renew: () => ({ body: "second" }) });
		p.onmessage = (e) => { log.push(e.data); if (++m === 2) { log = [log.join(",")]; p.close(); } };
	`))
}

func TestFailedRenewalEndsTheSource(t *testing.T) {
	t.Parallel()
	for fn, message := range map[string]string{
		`() => { throw new Error("no login") }`:   "Error: no login",
		`() => { fail() }`:                        "no login in Go",
		`() => "x"`:                               `option renew: the function must return an object, got "x"`,
		`async () => ({})`:                        "option renew: the function must return an object, got a promise; do not declare it async",
		`() => ({ token: 1 })`:                    "option renew: token: unknown property; use url, headers or body",
		`() => ({ url: "ftp://x" })`:              `option renew: url: `,
		`() => ({ headers: { "a b": "c" } })`:     `option renew: headers: `,
		`() => ({ body: "x" })`:                   "option renew: body: a GET request cannot have a body; set method to POST",
		`() => ({ headers: { a: "b\r\nc: d" } })`: `option renew: headers: `,
	} {
		v := newVU(t)
		v.set("fail", func() error { return fmt.Errorf("no login in Go") })
		v.set("url", serveText(t, streamHead+"retry: 1\n\n"))
		require.Contains(t, v.log(`
			const s = new EventSource(url, { ledger, reconnect: true, renew: `+fn+` });
			s.onerror = (e) => { if (!e.willReconnect) { log.push(e.reason, s.readyState, e.message); } };
		`), "renew 2 "+message, fn)
		require.Equal(t, "connecting opened closed:server+retry connecting closed:renew", v.rec.String(), fn)
	}
}

func TestAttemptWaitsForABusyEventLoop(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	v.set("url", serveRequests(t))
	require.Equal(t, "GET /  |true|GET / late 0", v.log(`
		let isFree = false;
		const s = new EventSource(url, { renew() { log.push(isFree); return { headers: { Authorization: "late" } }; } });
		s.onmessage = (e) => { log.push(e.data); if (isFree) { log = [log.join("|")]; s.close(); } };
		s.onerror = () => { if (!isFree) { wait(300); isFree = true; } };
	`))
}

func TestSourceClosesDuringItsRenewal(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"close during the wait":                  `s.onerror = () => setTimeout(() => s.close(), 1);`,
		"reconnect off during the wait":          `s.onerror = () => setTimeout(() => { s.reconnect = false; }, 1);`,
		"close when the attempt is in the queue": `s.onerror = () => { wait(100); s.close(); };`,
		"off when the attempt is in the queue":   `s.onerror = () => { wait(100); s.reconnect = false; };`,
	} {
		v := serveVU(t, respond(streamHead+"retry: "+map[bool]string{true: "1", false: "60000"}[name[len(name)-5:] == "queue"]+"\n\n"))
		require.Equal(t, "", v.log(`const s = new EventSource(url, { ledger, renew() { log.push("renewed"); } });`+script), name)
		require.Equal(t, "2", v.str("s.readyState"), name)
		require.Equal(t, "connecting opened closed:server+retry", v.rec.String(), name)
	}
	v := serveVU(t, respond(streamHead+"retry: 1\n\n"))
	v.log(`const s = new EventSource(url, { ledger, renew() { s.close(); } });`)
	require.Equal(t, "2", v.str("s.readyState"))
	require.NotContains(t, v.rec.String()[len("connecting opened"):], "opened")
}

func TestRenewDoesNotRunAfterTheIteration(t *testing.T) {
	t.Parallel()
	v := serveVU(t, respond(streamHead+"retry: 1\n\n"))
	v.set("cancel", func() { v.CancelContext(); <-v.VU.Context().Done(); time.Sleep(50 * time.Millisecond) })
	require.Equal(t, "", v.log(`const s = new EventSource(url, { renew() { log.push("renewed"); } }); s.onerror = () => cancel();`))
	require.ErrorIs(t, v.VU.Context().Err(), context.Canceled)
}
