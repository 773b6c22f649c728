package sse

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEventSourceReconnectsWithLastEventID(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		v := w.serveVU(t, func(p *peer) {
			id := p.req.Header.Get("Last-Event-ID")
			switch p.n {
			case 0:
				p.send(streamHead + "retry: 2\n\nid: 7\ndata: first" + id + "\n\nid: 8\n\n")
			case 1:
				p.send(streamHead + "data: after" + id + "\n\nid: 9\ndata: half")
			default:
				p.send(streamHead + "data: then" + id + "\n\n")
				p.hold()
			}
		})
		require.Equal(t, "first 7 server after8 8 truncated then8 8", v.log(`
		const s = new EventSource(url, { ledger, reconnectDelay: "1h" });
		s.onmessage = (e) => {
			log.push(e.data, e.lastEventId);
			if (e.data.startsWith("then")) s.close();
		};
		s.onerror = (e) => { log.push(e.reason); if (!(e.retryMs >= 2 && e.retryMs < 4)) log.push(e.retryMs); };
	`))
		require.Equal(t, "connecting opened event:first closed:server+retry connecting opened event:after8 "+
			"closed:truncated+retry connecting opened event:then8 closed:client", v.rec.String())
		require.NoError(t, v.rec.last.Err)
	})
}

// The header Last-Event-ID sets the first id. Received ids must replace it, even in later attempts.
func TestEventSourceContinuesFromAGivenID(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]string{
		`headers: { "last-event-id": "5" },`: "from 5 5 from 5 5 from 6 6 from ",
		`headers: { "last-event-id": "" },`:  "from   from   from 6 6 from ",
		`headers: { "last-event-id": "5" }, renew: () => ({ headers: { "last-event-id": "5" } }),`: "from 5 5 from 5 5 from 6 6 from ",
	} {
		v := serveVU(t, func(p *peer) {
			p.send(streamHead + "data: from " + p.req.Header.Get("Last-Event-ID") + "\n\n" + []string{"", "id: 6\n\n", "id\n\n", ""}[p.n])
			if p.n == 3 {
				p.hold()
			}
		})
		require.Equal(t, want, strings.TrimSuffix(v.log(`
			const s = new EventSource(url, { `+options+` reconnectDelay: 1, exactDelay: true });
			let n = 0;
			s.onmessage = (e) => { log.push(e.data, e.lastEventId); if (++n === 4) s.close(); };
			s.onerror = (e) => { if (e.retryMs !== 1) log.push(e.retryMs); };
		`), " "), options)
	}
}

func TestEventSourceBacksOffAndHonorsRetryAfter(t *testing.T) {
	t.Parallel()
	v := serveVU(t, func(p *peer) {
		switch p.n {
		case 0:
			p.send("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")
		default:
			p.send(streamHead + "data: 0\n\n")
			p.hold()
		}
	})
	require.Equal(t, "status true true 0", v.log(`
		const s = new EventSource(url, { reconnect: true, reconnectDelay: 1 });
		const start = Date.now();
		s.onerror = (e) => log.push(e.reason, e.retryMs >= 1000 && e.retryMs < 1500);
		s.onmessage = (e) => { log.push(Date.now() - start >= 1000, e.data); s.close(); };
	`))
}

func TestReconnectCanBeChanged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, want string }{
		"off before the end": {`
			const s = new EventSource(url);
			s.onopen = () => { log.push(s.reconnect); s.reconnect = false; log.push(s.reconnect); endStream(); };
			s.onerror = (e) => log.push(e.reason, e.willReconnect, s.readyState);`, "true false server false 2"},
		"off during the wait": {`
			endStream();
			const s = new EventSource(url, { reconnectDelay: "1h" });
			s.onerror = (e) => {
				log.push(e.willReconnect);
				setTimeout(() => { log.push(s.readyState); s.reconnect = false; log.push(s.readyState); }, 100);
			};`, "true 0 2"},
		"on before the end": {`
			const s = new EventSource(url, { reconnect: false });
			s.reconnect = true;
			endStream();
			s.onerror = (e) => { log.push(e.willReconnect); s.close(); };`, "true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := make(chan struct{})
			v := serveVU(t, func(p *peer) { p.send(streamHead); <-end })
			v.set("endStream", func() { close(end) })
			require.Equal(t, tt.want, v.log(tt.script))
		})
	}
}

// A block without data sets the last event ID, too. Requests before the first id send no ID.
func TestReconnectSendsTheLastEventID(t *testing.T) {
	t.Parallel()
	const query = "?topic=a%20b&since=all&x=1"
	for option, want := range map[string]string{
		``:                            query + "|; " + query + "|ü 1; " + query + "|9",
		`resume: undefined,`:          query + "|; " + query + "|ü 1; " + query + "|9",
		`resume: "header",`:           query + "|; " + query + "|ü 1; " + query + "|9",
		`resume: "none",`:             query + "|; " + query + "|; " + query + "|",
		`resume: { query: "since" },`: query + "|; ?topic=a%20b&x=1&since=%C3%BC+1|; ?topic=a%20b&x=1&since=9|",
		`resume: { query: "from" },`:  query + "|; " + query + "&from=%C3%BC+1|; " + query + "&from=9|",
	} {
		t.Run(option, func(t *testing.T) {
			t.Parallel()
			var requests []string
			v := serveVU(t, func(p *peer) {
				requests = append(requests, "?"+p.req.URL.RawQuery+"|"+p.req.Header.Get("Last-Event-ID"))
				switch p.n {
				case 0:
					p.send(streamHead + "retry: 1\nid: ü 1\ndata: a\n\n")
				case 1:
					p.send(streamHead + "data: b\n\nid: 9\n\n")
				default:
					p.send(streamHead + "data: end\n\n")
					p.hold() // prevents a reconnect before the script closes the stream
				}
			})
			require.Equal(t, "a:ü 1 b:ü 1 end:9", v.log(`
				const s = new EventSource(url + "/`+query+`", { `+option+` });
				s.onmessage = (e) => { log.push(e.data + ":" + e.lastEventId); if (e.data === "end") s.close(); };
			`), "lastEventId must not depend on the option")
			require.Equal(t, want, strings.Join(requests, "; "))
		})
	}
}

func TestReconnectRepeatsMethodAndBody(t *testing.T) {
	t.Parallel()
	var requests []string
	v := newVU(t)
	srv := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests = append(requests, fmt.Sprint(r.Method, " ", string(body), " ", r.Header.Get("Content-Type"), " ", r.Header.Get("Last-Event-ID"), " ", r.Header.Get("Accept")))
		if len(requests) == 3 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		stream(w, "retry: 1\nid: 5\ndata: a\n\n")
	})
	v.set("url", srv.URL)
	require.Equal(t, "server server no_content", v.log(`
		new EventSource(url, { method: "post", body: '{"q":"ü"}', headers: { "Content-Type": "application/json" } })
			.onerror = (e) => log.push(e.reason);
	`))
	require.Equal(t, []string{
		`POST {"q":"ü"} application/json  text/event-stream`,
		`POST {"q":"ü"} application/json 5 text/event-stream`,
		`POST {"q":"ü"} application/json 5 text/event-stream`,
	}, requests)
	opened, _ := v.sum(v.drainSamples(), "sse_connection_opened", "method", "POST")
	require.Equal(t, 2.0, opened)
}
