package sse

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A block without data sets the last event ID, too. Before the first id, a request has none.
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
			v := newVU(t)
			v.set("url", serve(t, func(p *peer) {
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
			}))
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
