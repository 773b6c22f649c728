package sse

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

func TestClosedEventSourceEndsItsStream(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		for _, tt := range []struct{ name, response, script, observed string }{
			{"by a timer", streamHead + "data: 1\n\n", `s.onmessage = () => setTimeout(() => s.close(), 1);`,
				"connecting opened event:1 closed:client"},
			{"while connecting", "", `setTimeout(() => s.close(), 100);`, "connecting closed:client"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				v := w.serveVU(t, func(p *peer) { p.send(tt.response); p.hold() })
				require.Empty(t, v.log(`
					const s = new EventSource(url, { ledger });
					s.onerror = (e) => log.push("error", e.reason);
				`+tt.script))
				require.Equal(t, tt.observed, v.rec.String())
				require.Equal(t, sseclient.ReasonClient, v.rec.last.Reason)
				require.Less(t, v.rec.last.Retry, time.Duration(0))
			})
		}
	})
}

func TestEventSourceIsInterruptedWithTheVU(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		for name, tt := range map[string]struct {
			handle func(p *peer)
			ready  string // condition of each source
		}{
			"open":       {func(p *peer) { p.send(streamHead + "data: 1\n\n"); p.hold() }, `s.got`},
			"connecting": {func(p *peer) { p.hold() }, `served() === 3`},
			"waiting":    {func(p *peer) { p.send(streamHead) }, `s.status === 200 && s.readyState === EventSource.CONNECTING`},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				v := w.vu(t)
				v.set("cancel", v.CancelContext)
				var served atomic.Int32
				v.set("served", served.Load)
				v.set("url", v.serve(func(p *peer) {
					served.Add(1)
					tt.handle(p)
				}))
				require.Equal(t, "canceled", v.log(`
				const s0 = new EventSource(url, { ledger, reconnectDelay: "1h" });
				const more = [];
				for (let i = 0; i < 2; i++) more.push(new EventSource(url, { reconnectDelay: "1h" }));
				for (const s of [s0, ...more]) s.onmessage = () => { s.got = true; };
				const poll = setInterval(() => {
					if (![s0, ...more].every((s) => `+tt.ready+`)) return;
					clearInterval(poll);
					setTimeout(() => {
						s0.onerror = s0.onmessage = s0.onopen = () => log.push("JS ran");
						log.push("canceled");
						cancel();
					}, 50);
				}, 5);
			`))
				if name == "waiting" {
					require.Equal(t, sseclient.ReasonServer, v.rec.last.Reason)
				} else {
					require.Equal(t, sseclient.ReasonInterrupted, v.rec.last.Reason)
				}
				all := v.drainSamples()
				closed, _ := v.sum(all, "sse_connection_closed")
				require.Equal(t, 3.0, closed, "no sample may be lost at the end of the context")
				if name == "open" {
					events, _ := v.sum(all, "sse_event")
					require.Equal(t, 3.0, events)
				}
				require.Equal(t, "2", v.str("s0.readyState"))
			})
		}
	})
}

func TestEventSourceHandlerExceptionEndsTheIteration(t *testing.T) {
	t.Parallel()
	v, other := newVU(t), &recorder{}
	v.set("other", other)
	v.set("url", serve(t, func(p *peer) { p.send(streamHead + "data: 1\n\ndata: 2\n\n"); p.hold() }))
	_, err := v.run(`
		var n = 0;
		const b = new EventSource(url, { ledger: other });
		b.onopen = () => {
			const s = new EventSource(url, { ledger });
			s.onmessage = () => { n++; throw new Error("no more"); };
		};
	`)
	require.ErrorContains(t, err, "no more")
	require.Equal(t, "1", v.str("n"))
	require.Equal(t, sseclient.ReasonInterrupted, v.rec.last.Reason)
	require.Equal(t, sseclient.ReasonInterrupted, other.last.Reason)
}

func TestEventSourceWorksInSuccessiveIterations(t *testing.T) {
	t.Parallel()
	v := serveVU(t, respond(streamHead+"data: 1\n\n"))
	for range 3 {
		require.Equal(t, "1", v.log(`
			(() => { const s = new EventSource(url, { reconnect: false }); s.onmessage = (e) => log.push(e.data); })()
		`))
	}
	events, _ := v.sum(v.drainSamples(), "sse_event")
	require.Equal(t, 3.0, events)
}
