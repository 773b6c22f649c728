package soak

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

const renewedJS = `var n = 0, lifetimes = [], described = service({
	name: "mine", token: (ttl) => { lifetimes.push(String(ttl)); return "a-secret-" + ++n; },
	connect: { url: "{base}/{topic}?t={token}", headers: { Authorization: "Bearer {token}" },
		then: { event: "HELLO", client: "json:$.id", url: "{base}/join/{client}", headers: { Authorization: "Bearer {token}" } } },
	message: { seq: "json:$.seq" }, resume: { by: "none" },
});`

// The request and the second request of each attempt have the latest token.
func TestEachAttemptRequestsItsToken(t *testing.T) {
	t.Parallel()
	rt, r := newServiceVU(t, renewedJS)
	r.plan.TokenTTL = 30
	service := serviceOf(t, rt)
	overrides, err := service.requestOverrides(1, "d-1")
	require.NoError(t, err)
	require.Equal(t, "http://h/d-topic-1?t=a-secret-1", requestUsing(&service.Connect, overrides.values).URL)
	require.NoError(t, service.renew(1, overrides))
	renewed := requestUsing(&service.Connect, overrides.values)
	require.Equal(t, "http://h/d-topic-1?t=a-secret-2", renewed.URL)
	require.Equal(t, "Bearer a-secret-2", renewed.Header.Get("Authorization"))
	second, err := service.secondRequestFor(&eventstream.Event{Name: []byte("HELLO"), Data: []byte(`{"id":"x"}`)}, overrides.values)
	require.NoError(t, err)
	require.Equal(t, "Bearer a-secret-2", second.Header.Get("Authorization"))
	require.Equal(t, "30,30", js(t, rt, `lifetimes.join()`))
	r.plan.TokenTTL = 0
	require.NoError(t, service.renew(1, overrides))
	require.Equal(t, "30,30,undefined", js(t, rt, `lifetimes.join()`))

	rt, _ = newServiceVU(t, `var calls = 0, described = service({name: "any", url: (n) => "http://h/" + n + "/" + calls++, connect: {}, message: "unchecked"})`)
	service = serviceOf(t, rt)
	overrides, err = service.requestOverrides(1, "d-1")
	require.NoError(t, err)
	require.NoError(t, service.renew(1, overrides))
	require.Equal(t, "http://h/1/1", overrides.url)
}

// A token that is refused at a reconnect is reported. No finding contains a current or former token.
func TestRefusedTokenIsReported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		renew bool // before the reconnect
		end   sseclient.Close
		want  string
	}{
		{false, sseclient.Close{Reason: sseclient.ReasonStatus, Status: 401, Err: errors.New("unexpected status 401 Unauthorized: a-secret-1 is over")},
			"status 401: the service refused the token on reconnect: token() returned the same token, 12.0 s old; {token} is over"},
		{true, sseclient.Close{Reason: sseclient.ReasonStatus, Status: 403, Err: errors.New("unexpected status 403 Forbidden: a-secret-2 for a-secret-1")},
			"status 403: the service refused the token on reconnect: token() returned a new token, 12.0 s old; {token} for {token}"},
		{false, sseclient.Close{Reason: sseclient.ReasonStatus, Status: 404, Err: errors.New("unexpected status 404 Not Found: no a-secret-1")}, "status 404: no {token}"},
	} {
		rt, r := newServiceVU(t, renewedJS)
		o := newStream(t, rt, "d-1")
		service := serviceOf(t, rt)
		overrides, err := service.requestOverrides(1, "d-1")
		require.NoError(t, err)
		o.override = overrides.credentials
		o.connect(r.start.Add(time.Second))
		o.closed(r.start.Add(2*time.Second), sseclient.Close{Reason: sseclient.ReasonServer, Retry: time.Second})
		if c.renew {
			require.NoError(t, service.renew(1, overrides))
		} else { // as a module that reuses its token
			o.credentials().set("a-secret-1", time.Now())
		}
		c.end.Retry = -1
		o.connecting(o.credentials().issuedAt.Add(11 * time.Second))
		o.closed(o.credentials().issuedAt.Add(12*time.Second), c.end)
		findings := shardOf(r).Connections[0].Findings
		require.Equal(t, ledger.KindDropped, findings[len(findings)-1].Kind)
		require.Equal(t, c.want, findings[len(findings)-1].Note)
		require.Equal(t, "{token}", o.credentials().excerpt([]byte(o.credentials().token)))
	}
}

// The 401 of a stream that never opened, or of a service without a token, is an ordinary refusal.
func TestOtherRefusalsAreUnchanged(t *testing.T) {
	t.Parallel()
	refusal := sseclient.Close{Reason: sseclient.ReasonStatus, Status: 401, Err: errors.New("unexpected status 401 Unauthorized: who are you?"), Retry: -1}
	for _, c := range []*credentials{{}, {token: "a-secret"}} {
		require.Equal(t, refusal.Err.Error(), c.describeEnd(time.Now(), refusal, 0).Err.Error())
	}
	require.Equal(t, refusal.Err.Error(), (&credentials{}).describeEnd(time.Now(), refusal, 3).Err.Error())
	then := refusal
	then.Reason = sseclient.ReasonThen
	require.Equal(t, refusal.Err.Error(), (&credentials{token: "a-secret"}).describeEnd(time.Now(), then, 1).Err.Error())
	require.True(t, strings.HasPrefix((&credentials{token: "a-secret"}).describeEnd(time.Now(), then, 2).Err.Error(), "the service refused the token on reconnect: "))
}

// A service may end a stream because of its token. Such an end does not count as early, even if it precedes the
// declared lifetime.
func TestStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	rt, r := newVU(t)
	js(t, rt, `service({name: "mine", token: (ttl) => "x" + ttl, connect: {url: "{base}?t={token}"}, message: {seq: "json:$.seq"}, end: {by: "server", lifetime: [475, 600]}})`)
	js(t, rt, planJS)
	r.mu.Lock()
	r.plan.Service, r.plan.Marker, r.plan.TokenTTL = "mine", "run-1", 30
	r.configure()
	r.mu.Unlock()
	rt.MoveToVUContext(&lib.State{Samples: make(chan metrics.SampleContainer, 1000), Tags: lib.NewVUStateTags(rt.VU.InitEnv().Registry.RootTagSet())})
	o := newStream(t, rt, "d-1")
	o.connect(r.start.Add(time.Second))
	o.closed(r.start.Add(20*time.Second), sseclient.Close{Reason: sseclient.ReasonServer, Retry: time.Second})
	o.ledger.CloseRequested(r.instant(r.start.Add(20100 * time.Millisecond)))
	got := shardOf(r).Connections[0]
	require.Zero(t, got.EndedEarly)
	require.Equal(t, ledger.Completed, got.State)
}

// A service may repeat a token in its errors, as OpenAI does.
func TestFiniteHidesTokensInFindings(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, token := range []string{`'SUBSCRIBE_TOKEN'`, `() => 'a-secret-key'`} {
			for path, want := range map[string]string{
				"refused": "unexpected status 401 Unauthorized: wrong key {token}", "failed": `the service reported: {"error":"wrong key {token}"}`,
				"corrupted": "the data is not JSON: wrong key {token}",
			} {
				url := serve(t, func(w http.ResponseWriter, r *http.Request) {
					key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
					switch path {
					case "refused":
						w.WriteHeader(http.StatusUnauthorized)
						fmt.Fprint(w, "wrong key "+key)
					case "failed":
						w.Header().Set("Content-Type", "text/event-stream")
						fmt.Fprintf(w, "event: error\ndata: {\"error\":\"wrong key %s\"}\n\n", key)
					default:
						w.Header().Set("Content-Type", "text/event-stream")
						fmt.Fprintf(w, "data: wrong key %s\n\ndata: [DONE]\n\n", key)
					}
				})
				got := finiteOf(t, url, `{name: 'answers', token: `+token+`, connect: {url: '{base}/', headers: {Authorization: 'Bearer {token}'}},
					message: {seq: 'json:$.n', per: 'request'}, end: {by: 'event', done: {data: '[DONE]'}, failed: {event: 'error'}}}`, `{rate: 10, concurrency: 0, seconds: 0.1}`)
				require.Equal(t, want, got.Findings[0].Reason, token)
			}
		}
	})
}
