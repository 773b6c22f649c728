package sse

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A goSide is an observer like that of a described service: it records the headers, chooses the last event ID, and makes
// the second request.
type goSide struct {
	recorder
	last string // the last event ID
	fail bool   // the second request cannot be made
}

func (g *goSide) Opened(started time.Time, r *sseclient.Response) {
	g.note(r.At, "head:%s", r.Header.Get("Resumed"))
	g.recorder.Opened(started, r)
}

func (g *goSide) LastEventID() string { return g.last }

func (g *goSide) Event(at time.Time, e *eventstream.Event) {
	g.recorder.Event(at, e)
	if len(e.Name) == 0 {
		g.last = string(e.Data)
	}
}

func (g *goSide) FollowUp(e *eventstream.Event, f *sseclient.FollowUp) bool {
	switch {
	case g.fail:
		f.Send(nil, errors.New("no client in it"))
		return true
	case string(e.Name) != "hello":
		return false
	}
	f.Send(&sseclient.SecondRequest{
		URL: "/sub?for=" + string(e.Data), Header: http.Header{"A": {"{first.id}", "b"}}, Body: "{first.id}",
		OK: func(status int) bool { return status == http.StatusTeapot },
	}, nil)
	return true
}

func TestObserverChoosesLastEventIDAndSecondRequest(t *testing.T) {
	t.Parallel()
	v, g := newVU(t), &goSide{}
	answered := make(chan struct{}, 2)
	v.set("g", g)
	v.set("answered", func() { answered <- struct{}{} })
	requests := make(chan string, 2)
	n := 0
	v.set("url", v.serveHTTP(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			requests <- fmt.Sprint(r.RequestURI, " ", r.Header.Get("A"), " ", string(body))
			w.WriteHeader(http.StatusTeapot)
			return
		}
		n++
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Resumed", r.URL.Query().Get("since"))
		_, _ = fmt.Fprintf(w, "retry: 1\nid: 99\ndata: m%d\n\nevent: hello\ndata: c%d\n\n", n, n)
		w.(http.Flusher).Flush()
		<-answered
	}))
	v.mustRun(`
		const s = new EventSource(url + "/", { ledger: g, resume: { query: "since" } });
		let n = 0;
		s.addEventListener("then", () => { if (++n === 2) s.close(); answered(); });
	`)
	require.Equal(t, "/sub?for=c1 {first.id}, b {first.id}", <-requests)
	require.Equal(t, "/sub?for=c2 {first.id}, b {first.id}", <-requests)
	require.Equal(t, "connecting head: opened event:m1 event:c1 answered:418 closed:server+retry "+
		"connecting head:m1 opened event:m2 event:c2 answered:418 closed:client", g.String())
}

func TestErrorOfASecondRequestEndsTheStream(t *testing.T) {
	t.Parallel()
	v, g := newVU(t), &goSide{fail: true}
	v.set("g", g)
	v.set("url", serve(t, func(p *peer) { p.send(streamHead + "retry: 3600000\ndata: 0\n\n"); p.hold() }))
	require.Equal(t, "then the second request (then): no client in it", v.log(`
		const s = new EventSource(url, { ledger: g });
		s.onerror = (e) => { log.push(e.reason, e.message); s.close(); };
	`))
}
