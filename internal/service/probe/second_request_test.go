package probe

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/memory"
)

func TestSecondRequest(t *testing.T) {
	t.Parallel()
	d := probe(t, &fakeservice.Hub{RequireJoin: true, ID: func(int) string { return "c1" }}, Config{
		URL: base + "/sub/all", Publish: publishRequest,
		SecondRequest: Request{URL: "{base}/join", Body: `{"client":"{client}","topic":"{topic}"}`},
	})
	require.Contains(t, d.json, `"connect":{"url":"{base}/sub/all","then":{"event":"HELLO","client":"json:$.client","url":"{base}/join","body":"{\"client\":\"{client}\",\"topic\":\"{topic}\"}"}}`)
	require.Contains(t, d.json, published)
	require.Contains(t, d.notes, "The id was the same in all messages of a stream (c1): no sequence.")
	require.Contains(t, d.notes, "The service answered the second request with 204.")
}

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	for want, service := range map[string]http.HandlerFunc{
		"GET " + base + "/sub answered with no Content-Type, which is not an event stream; pass the URL of an event stream": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
		},
		"POST " + base + "/join answered 409 Conflict": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusConflict)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: hello\ndata: {}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			dial := memory.Serve(t, service)
			_, err := Run(t.Context(), Config{URL: base + "/sub", SecondRequest: Request{URL: "{base}/join"}, Streams: 1, Length: time.Minute, Dial: dial})
			require.EqualError(t, err, want)
		})
	}
}
