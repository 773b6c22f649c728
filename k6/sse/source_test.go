package sse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/js/modulestest"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

func TestEventSourceReadsAStream(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		v := w.serveVU(t, respond(streamHead+"id: 1\ndata: a\n\n: c\nevent: x\ndata: b\ndata\n\n:\n\n"))
		start := time.Now()
		got := v.log(`
		const s = new EventSource(url + "/e?id=dev1", { reconnect: false });
		log.push(s.readyState, s.url === url + "/e?id=dev1", s.withCredentials, s.status, s.connectMs);
		s.onopen = (e) => log.push(e.type, s.readyState, s.status, e.target === s, s.connectMs > 0);
		s.onmessage = (e) => log.push(e.type, e.data, e.lastEventId, e.origin === url, e.comment === "");
		var at;
		s.addEventListener("x", (e) => { at = e.receivedAt; log.push(e.type, JSON.stringify(e.data), e.lastEventId, e.comment) });
		s.onerror = (e) => log.push(e.type, e.reason, e.status, e.willReconnect, e.retryMs, s.readyState, e.message);
	`)
		require.Equal(t, "0 true false 0 0 open 1 200 true true message a 1 true true "+
			`x "b\n" 1 c error server 200 false  2 the server ended the stream`, got)
		at := v.VU.Runtime().Get("at").ToFloat()
		require.InDelta(t, float64(start.UnixMilli()), at, float64(testTimeout.Milliseconds()))
		require.Equal(t, "0 1 2 0 1 2", v.str(`[EventSource.CONNECTING, EventSource.OPEN, EventSource.CLOSED,
		s.CONNECTING, s.OPEN, s.CLOSED].join(" ")`))
	})
}

// Whether a reconnect follows depends on the reason, and on the option reconnect: missing (as in the standard), true or
// false.
func TestEventSourceReportsTheReasonOfItsEnd(t *testing.T) {
	runTransports(t, mixedTransports, func(t *testing.T, w transport) {
		const chunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
		const lengthHead = "HTTP/1.1 200 OK\r\nContent-Type: TEXT/Event-Stream\r\nContent-Length: 18\r\n\r\n"
		status := func(line, header string) func(*peer) {
			return respond("HTTP/1.1 " + line + "\r\nContent-Length: " + fmt.Sprint(len(header)) + "\r\n\r\n" + header)
		}
		tests := []struct {
			name     string
			handle   func(p *peer)
			options  string // in addition to reconnect
			opened   bool
			reason   sseclient.Reason
			message  string // a part of the message
			standard bool   // reconnects without the option reconnect
			always   bool   // reconnects with reconnect: true
		}{
			{"clean end", respond(streamHead + "data: 0\n\n"), "", true, sseclient.ReasonServer, "ended the stream", true, true},
			{"clean end, chunked", respond(chunkedHead + "9\r\ndata: 0\n\n\r\n0\r\nX: y\r\n\r\n"), "", true, sseclient.ReasonServer, "", true, true},
			{"clean end, content-length", respond(lengthHead + "data: 0\n\ndata: 1\n\n"), "", true, sseclient.ReasonServer, "", true, true},
			{"an incomplete event at a clean end", respond(streamHead + "data: 0\n\ndata: 1\n"), "", true, sseclient.ReasonTruncated, "inside an event", true, true},
			{"no last chunk", respond(chunkedHead + "9\r\ndata: 0\n\n\r\n"), "", true, sseclient.ReasonTruncated, "last chunk", true, true},
			{"before its content-length", respond(lengthHead + "data: 0\n\n"), "", true, sseclient.ReasonTruncated, "content-length", true, true},
			{"broken chunks", respond(chunkedHead + "zz\r\n"), "", true, sseclient.ReasonError, "malformed chunked", true, true},
			{"reset", func(p *peer) { p.send(streamHead + "data: 0\n\n"); time.Sleep(20 * time.Millisecond); p.reset() }, "", true, sseclient.ReasonReset, "reset", true, true},
			{"silent", func(p *peer) { p.send(streamHead + "data: 0\n\n"); p.hold() }, "idleTimeout: 60", true, sseclient.ReasonIdle, "the idle timeout", true, true},
			{"long event", respond(streamHead + "data: " + strings.Repeat("x", 5000)), "maxEventSize: 1000", true, sseclient.ReasonTooLong, "1000 bytes", false, false},
			{"204", status("204 No Content", ""), "", false, sseclient.ReasonNoContent, "204", false, false},
			{"404", status("404 Not Found", `{"title":"Not found","detail":"no such device"}`), "", false, sseclient.ReasonStatus, "404 Not Found: no such device", false, false},
			{"409", status("409 Conflict", "this id has a stream\nmore"), "", false, sseclient.ReasonStatus, "409 Conflict: this id has a stream", false, true},
			{"429", status("429 Too Many Requests", ""), "", false, sseclient.ReasonStatus, "429", false, true},
			{"500", status("500 Internal Server Error", "<html>"), "", false, sseclient.ReasonStatus, "500 Internal Server Error", false, true},
			{"503", status("503 Service Unavailable", ""), "", false, sseclient.ReasonStatus, "503", false, true},
			{"a status without a standard text", status("520 Origin", "down"), "", false, sseclient.ReasonStatus, "unexpected status 520: down", false, true},
			{"no response", func(*peer) {}, "", false, sseclient.ReasonTruncated, "read the response header", true, true},
			{"an incomplete header", respond("HTTP/1.1 200 OK\r\nContent-Ty"), "", false, sseclient.ReasonTruncated, "", true, true},
			{"no HTTP", respond("SSH-2.0-OpenSSH\r\n"), "", false, sseclient.ReasonError, "malformed HTTP", true, true},
			{"reset before the header", func(p *peer) { p.reset() }, "", false, sseclient.ReasonReset, "", true, true},
			{"long header", respond("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n"), "", false, sseclient.ReasonTooLong, "65536", false, false},
			{"header never ends", func(p *peer) { p.send("HTTP/1.1 200 OK\r\n"); p.hold() }, "connectTimeout: 60", false, sseclient.ReasonConnectTimeout, "the connect timeout", true, true},
			{"1xx first", respond("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + streamHead + "data: 0\n\n"), "", true, sseclient.ReasonServer, "", true, true},
		}
		for _, tt := range tests {
			for mode, reconnects := range map[string]bool{"": tt.standard, "reconnect: true,": tt.always, "reconnect: false,": false} {
				t.Run(tt.name+" "+mode, func(t *testing.T) {
					t.Parallel()
					v := w.serveVU(t, tt.handle)
					got := v.log(`
					const s = new EventSource(url, {` + mode + tt.options + (map[bool]string{true: ",", false: ""})[tt.options != ""] + ` ledger });
					s.onopen = () => log.push("open");
					s.onerror = (e) => {
						log.push(e.reason, e.willReconnect, s.readyState, typeof e.retryMs);
						globalThis.message = e.message;
						s.close();
						log.push(s.readyState);
					};
				`)
					want := fmt.Sprintf("%s false 2 object 2", tt.reason)
					if reconnects {
						want = fmt.Sprintf("%s true 0 number 2", tt.reason)
					}
					closed := "closed:" + string(tt.reason)
					if reconnects {
						closed += "+retry"
					}
					if tt.opened {
						want = "open " + want
						assert.Regexp(t, "^connecting opened (event:[^ ]+ )*"+strings.ReplaceAll(closed, "+", `\+`)+"$", v.rec.String())
					} else {
						assert.Equal(t, "connecting "+closed, v.rec.String())
					}
					assert.Equal(t, want, got)
					assert.Contains(t, v.str("message"), tt.message)
					all := v.drainSamples()
					n, _ := v.sum(all, "sse_connection_closed", "reason", string(tt.reason), "opened", fmt.Sprint(tt.opened))
					assert.Equal(t, 1.0, n)
					opened, _ := v.sum(all, "sse_connection_opened")
					assert.Equal(t, tt.opened, opened == 1)
				})
			}
		}
	})
}

func TestWrongArgumentsThrowATypeError(t *testing.T) {
	t.Parallel()
	v := serveVU(t, respond(streamHead))
	v.mustRun(`const s = new EventSource(url, { reconnect: false });`)
	for _, script := range []string{
		`s.addEventListener("x", 1)`, `s.addEventListener("x")`, `EventSource.prototype.close.call({})`, `EventSource.prototype.close()`,
		`"use strict"; s.readyState = 1`, `s.dispatchEvent("x")`, `s.dispatchEvent({})`, `s.slow()`, `s.slow(-1)`,
	} {
		_, err := v.VU.Runtime().RunString(script)
		require.ErrorContains(t, err, "TypeError", script)
	}
}

func TestConstructorRejectsInvalidArguments(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	v.set("url", "http://127.0.0.1:1/")
	for script, want := range map[string]string{
		`new EventSource()`:                                 "TypeError: EventSource: a URL is required",
		`EventSource(url)`:                                  "TypeError", // Web IDL, section 3.7.1: new is required
		`sse.EventSource(url)`:                              "TypeError",
		`EventSource.call({}, url)`:                         "TypeError",
		`new EventSource("")`:                               "SyntaxError: EventSource: invalid URL",
		`new EventSource("/relative")`:                      "SyntaxError: EventSource: invalid URL \"/relative\": it must begin with",
		`new EventSource("http://")`:                        "host is missing",
		`new EventSource("http://[::1")`:                    "SyntaxError",
		`new EventSource("http://h/%zz")`:                   "SyntaxError",
		`new EventSource("http://this is invalid/")`:        "SyntaxError",
		`new EventSource("http://h:65536/")`:                "SyntaxError", // URL standard, section 4.4, port state
		`new EventSource("http://h:99999999999999999999/")`: "SyntaxError",
		`new EventSource("http://xn--\u00FC.example/")`:     "SyntaxError", // section 3.3, domain to ASCII
		`new EventSource("http://a\uFF0Fb/")`:               "SyntaxError", // a fullwidth slash is mapped to a slash
		`new EventSource("http://\u00AD/")`:                 "SyntaxError", // a soft hyphen is removed
		`new EventSource(url, 5)`:                           "TypeError: EventSource: the options must be an object",
		`new EventSource(url, {idletimeout: 1})`:            `TypeError: EventSource: unknown option "idletimeout"`,
	} {
		_, err := v.VU.Runtime().RunString(script)
		require.ErrorContains(t, err, want, script)
	}
	init := newVU(t)
	init.VU.StateField = nil
	_, err := init.VU.Runtime().RunString(`new EventSource("http://h/")`)
	require.ErrorContains(t, err, "only inside a VU")
	_, err = init.VU.Runtime().RunString(`sse.open("http://h/", () => {})`)
	require.ErrorContains(t, err, "only inside a VU")
}

// k6 calls Exports at each use of an imported name.
func TestExportsReturnsTheSameObjects(t *testing.T) {
	t.Parallel()
	rt := modulestest.NewRuntime(t)
	instance := New().NewModuleInstance(rt.VU)
	first, second := instance.Exports(), instance.Exports()
	for name := range first.Named {
		require.Same(t, first.Named[name], second.Named[name])
	}
	require.Same(t, first.Default, second.Default)
}

func TestEventSourceWithoutListenersRunsNoJavaScriptPerEvent(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		v := w.vu(t)
		const n = 500
		ready := make(chan struct{})
		v.set("ready", func() { close(ready) })
		v.set("url", v.serve(func(p *peer) {
			p.send(streamHead)
			<-ready // after the open task no other task is queued
			for range n {
				p.send("data: 0\n\n")
			}
		}))
		var tasks int
		register := v.VU.RegisterCallbackField
		v.VU.RegisterCallbackField = func() func(func() error) { tasks++; return register() }
		v.mustRun(`new EventSource(url, { ledger, reconnect: false }).onopen = () => setTimeout(ready, 100)`)
		require.Equal(t, n, strings.Count(v.rec.String(), "event:0"))
		require.LessOrEqual(t, tasks, 12)
		all := v.drainSamples()
		events, samples := v.sum(all, "sse_event")
		require.Equal(t, float64(n), events)
		require.LessOrEqual(t, samples, 4)
	})
}
