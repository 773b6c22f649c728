//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// changeModule writes a module of load-tests/services with replaced texts, and returns its path.
func changeModule(t *testing.T, name string, oldNew ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "load-tests", "services", name+".js"))
	require.NoError(t, err)
	for i := 0; i < len(oldNew); i += 2 {
		require.Contains(t, string(text), oldNew[i])
	}
	return writeFile(t, name+".js", strings.NewReplacer(oldNew...).Replace(string(text)))
}

// longRun has settings for services that do not resume. With these settings, most messages can be checked.
var longRun = []string{"--seconds", "22", "--publish-rate", fmt.Sprint(2 * serviceTopics)}

// sentToStreams returns the number of messages that the streams receive in total if no message is lost.
func sentToStreams(v *verdict.Verdict) uint64 {
	return v.Messages.Published.Confirmed / serviceTopics * serviceStreams
}

// A service may end its streams after their lifetime. Messages between two streams are expected only if the second one
// resumes the first.
func TestClosedStreamsReconnect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		options  services.Options
		lifetime [2]string // text in the module, and its replacement
		resumes  bool
		args     []string
	}{
		// Mercure ends a stream after 80 to 100 % of the lifetime, minus 5 s.
		{"mercure", services.Options{Lifetime: 10 * time.Second}, [2]string{"[475, 600]", "[2.5, 6]"}, true, nil},
		// The lifetime is ten times the delay of a reconnect, so that most messages are checked.
		{"pocketbase", services.Options{Lifetime: 7 * time.Second}, [2]string{"[300, 1800]", "[6.5, 8]"}, false, longRun},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := startService(t, c.name, c.options)
			r.Service = changeModule(t, c.name, c.lifetime[0], c.lifetime[1])
			s := soakService(t, r, "lifetime-", faulty.Options{}, c.args...)
			v := s.verdict()
			require.Equal(t, verdict.Pass, v.Verdict, s.out.String())
			require.GreaterOrEqual(t, v.Connections.Reconnected, serviceStreams)
			require.Equal(t, serviceStreams, v.Connections.Completed)
			m := v.Messages
			all := sentToStreams(v)
			require.Zero(t, m.Duplicated+m.Reordered+m.Corrupted)
			require.Zero(t, m.Missed)
			require.Zero(t, v.Evidence.Undetectable)
			if c.resumes {
				require.Equal(t, all, m.Received)
			} else {
				require.Greater(t, m.Received, all/2)
			}
		})
	}
}

// If a disconnected client reconnects, a service that resumes streams must send the missed messages.
func TestResumedStreamExpectsMissedMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		options          services.Options
		want             verdict.Outcome
		args             []string
		minLost, maxLost uint64 // number of messages that each client does not receive
	}{
		{"nchan", services.Options{History: -1}, verdict.Fail, nil, 1, 3},  // the service does not announce the gap
		{"sse-starlette", services.Options{}, verdict.Pass, longRun, 1, 6}, // the service does not resume
	} {
		t.Run(fmt.Sprint(c.name, " ", c.want), func(t *testing.T) {
			t.Parallel()
			r := startService(t, c.name, c.options)
			o := faulty.Options{}
			for range serviceStreams { // each client's first stream reaches its third message before any second stream
				o.Faults = append(o.Faults, faulty.Fault{Kind: faulty.Reset, Message: 3, Once: true})
			}
			s := soakService(t, r, "cut-", o, append([]string{"--reconnect"}, c.args...)...)
			v := s.verdict()
			require.Equal(t, c.want, v.Verdict, s.out.String())
			require.Len(t, s.proxy.Actions(), serviceStreams)
			require.Equal(t, serviceStreams, v.Connections.Reconnected)
			require.Equal(t, serviceStreams, v.Connections.Completed)
			m, all := v.Messages, sentToStreams(v)
			require.LessOrEqual(t, m.Received, all-c.minLost*serviceStreams, s.out.String())
			require.GreaterOrEqual(t, m.Received, all-c.maxLost*serviceStreams, s.out.String())
			require.Zero(t, m.Duplicated+m.Reordered+m.Corrupted)
			require.Zero(t, v.Evidence.Undetectable)
			if c.want == verdict.Fail {
				require.Equal(t, all-m.Received, m.Missed)
				require.Regexp(t, `^cut-[0-9]+ missed messages? 3 .*of topic cut-topic-[0-9]+, published at `, findings(v, ledger.KindLost)[0])
			}
		})
	}
}

// The service must end each stream within the lifetime that the description states.
func TestPlannedEndsWithinTheLifetime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hub    *fakeservice.Hub
		reason string
	}{
		"too early": {&fakeservice.Hub{Lifetime: time.Second, History: true}, "before the end of its lifetime (end.lifetime)"},
		"never":     {&fakeservice.Hub{History: true}, "s, longer than its lifetime (end.lifetime)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.hub.ID = fakeservice.DecimalID
			server := c.hub.Start(t)
			r := begin(t, nil, append(publishFlags(describeHub(t, "end: { by: 'server', lifetime: [2.5, 3.5] },"), server.URL),
				"--prefix", "ends-", "--connections", "16", "--seconds", "14")...)
			v := r.verdict()
			require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
			require.Contains(t, reasons(v), c.reason)
		})
	}
}

// lossOptions returns options of a proxy that loses one message of a topic.
func lossOptions(topic string, number int64) faulty.Options {
	return faulty.Options{Faults: []faulty.Fault{{Kind: faulty.Lose, Topic: topic, Number: number}}}
}

// Runner 1 publishes for the streams of both runners, which are on two machines.
func TestRunnersShareAPublisher(t *testing.T) {
	t.Parallel()
	r := startService(t, "nchan", services.Options{})
	shared := t.TempDir()
	start := time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339)
	proxy := startProxy(t, r.URL, lossOptions("parts-topic-10", 4))
	var parts []*serviceSoak
	for _, runner := range []string{"1/2", "2/2"} {
		parts = append(parts, soakThrough(t, r, proxy, "parts-", "--runner", runner, "--shards", shared, "--start-at", start))
	}
	for _, p := range parts {
		require.Equal(t, 0, p.end(), p.out.String())
	}
	dir := results.Dir(filepath.Join(shared, "t"))
	v, text := mergeFolder(t, string(dir))
	require.Equal(t, verdict.Fail, v.Verdict, text)
	require.EqualValues(t, 1, v.Messages.Missed, text)
	require.EqualValues(t, serviceStreams*perTopic-1, v.Messages.Received)
	require.EqualValues(t, publishedTotal, v.Messages.Published.Confirmed)
	require.Equal(t, serviceStreams, v.Connections.Completed)
	require.Len(t, v.Runners, 2)
	require.Zero(t, v.Evidence.Undetectable)
	require.Len(t, findings(v, ledger.KindLost), 1)
	require.Regexp(t, "^parts-10 missed message 4 of topic parts-topic-10, published at ", findings(v, ledger.KindLost)[0])

	publisherShards, err := filepath.Glob(dir.Path("runner-1-*.json.gz"))
	require.NoError(t, err)
	require.Len(t, publisherShards, 1)
	require.NoError(t, os.Remove(publisherShards[0]))
	v, text = mergeFolder(t, string(dir))
	require.Equal(t, verdict.Invalid, v.Verdict, text)
	require.Contains(t, reasons(v), "runner 1 of 2 left no shard")
}

// k6 without soak also publishes, and its shards can be merged into a verdict.
func TestPlainK6SoaksAService(t *testing.T) {
	t.Parallel()
	r := startService(t, "nchan", services.Options{})
	shards := t.TempDir()
	proxy := startProxy(t, r.URL, lossOptions("loss-topic-10", 4))
	laptops := map[string]*exec.Cmd{}
	for _, prefix := range []string{"clean-", "loss-"} {
		laptops[prefix] = startLaptop(t, proxy.URL, prefix, serviceStreams, shards, "SERVICE=nchan", "SECONDS=14",
			"TOPICS="+fmt.Sprint(serviceTopics), "PUBLISH_RATE="+fmt.Sprint(serviceTopics))
	}
	for prefix, exit := range map[string]int{"clean-": 0, "loss-": 99} { // 99: a check failed
		_ = laptops[prefix].Wait()
		require.Equal(t, exit, laptops[prefix].ProcessState.ExitCode(), fmt.Sprint(laptops[prefix].Stdout))
	}
	v, text := mergeFolder(t, shards)
	require.Equal(t, verdict.Fail, v.Verdict, text)
	require.EqualValues(t, 1, v.Messages.Missed, text)
	require.EqualValues(t, 2*serviceStreams*perTopic-1, v.Messages.Received)
	require.EqualValues(t, 2*publishedTotal, v.Messages.Published.Confirmed)
	require.Zero(t, v.Evidence.Undetectable)
	require.Contains(t, reasons(v), "loss-10 missed message 4 of topic loss-topic-10, published at ")
}

// An exception in token() aborts k6. Otherwise k6 would only log the exception, and pass without any check.
func TestUnavailableTokenFailsK6(t *testing.T) {
	t.Parallel()
	for token, message := range map[string]string{
		"() => { throw new Error('no login') }": "token() of the service mine: Error: no login",
		"async () => 'x'":                       "token() of the service mine: the function must return a string, got a promise; do not declare it async",
	} {
		file := writeFile(t, "mine.js", "export default { name: 'mine', token: "+token+", connect: { url: '{base}?t={token}' }, message: 'unchecked' };")
		cmd := exec.Command(filepath.Join(root, "bin", "k6"), "run", filepath.Join(root, "load-tests", "sse", "connectionTest.js"),
			"--env", "SERVICE="+file, "--env", "CONNECTIONS=2", "--env", "SECONDS=40", "--env", "BACKEND_URL=http://127.0.0.1:1")
		out, err := cmd.CombinedOutput()
		require.Error(t, err, string(out))
		require.Equal(t, 108, cmd.ProcessState.ExitCode(), string(out))
		require.Contains(t, string(out), "test aborted: "+message)
	}
}

// Most messages of streams with a lifetime of 1.9 s cannot be checked, so the run is invalid, even if messages are
// lost. At the rate that the reason of the verdict names, most messages are checked.
func TestMessagesOfShortStreamsAreNotChecked(t *testing.T) {
	t.Parallel()
	run := func(prefix, rate string, drop func(topic, payload string) bool) *verdict.Verdict {
		server := (&fakeservice.Hub{Lifetime: 1900 * time.Millisecond, Preamble: "retry: 100\n\n", Lose: drop}).Start(t)
		service := describeHub(t, "end: { by: 'server', lifetime: [1.5, 2.5] }, resume: { by: 'none' },")
		return begin(t, nil, "--service", service, "--backend-url", server.URL, "--topics", "8", "--publish-rate", rate,
			"--prefix", prefix, "--connections", "16", "--seconds", "17").verdict()
	}
	lossy := func(_, payload string) bool {
		return strings.Contains(payload, `"seq":4,`) || strings.Contains(payload, `"seq":8,`)
	}
	v := run("few-", "8", lossy)
	require.Equal(t, verdict.Invalid, v.Verdict, reasons(v))
	rate := regexp.MustCompile(`publish at least ([0-9]+) messages per second \(PUBLISH_RATE\)`).FindStringSubmatch(reasons(v))
	require.NotEmpty(t, rate, reasons(v))
	v = run("many-", rate[1], nil)
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
}

// The description states that streams resume, but heartbeats of the service reset the last event id of its clients.
func TestReconnectsWithoutAnID(t *testing.T) {
	t.Parallel()
	hub := &fakeservice.Hub{
		ID: fakeservice.DecimalID, History: true, Heartbeat: "event: ping\nid:\n\n", HeartbeatInterval: 50 * time.Millisecond,
		Lifetime: 3 * time.Second, Preamble: "retry: 500\n\n",
	}
	service := describeHub(t, "heartbeat: { event: 'ping' }, end: { by: 'server', lifetime: [2.5, 3.5] },")
	v := begin(t, nil, append(publishFlags(service, hub.Start(t).URL), "--prefix", "ids-", "--connections", "16", "--seconds", "14")...).verdict()
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Contains(t, reasons(v), `the heartbeat "ping"`)
}

// expiringToken is the field token of a description. A token contains its expiry in ms since 1970, which is TOKEN_TTL
// after the call.
const expiringToken = "token: (ttl = 60) => `until-${Date.now() + ttl * 1000}-secret`,"

// singleToken is like expiringToken, but returns the same token for all attempts, which is a mistake.
const singleToken = "token: (() => { let t; return (ttl) => { t ??= `until-${Date.now() + ttl * 1000}-secret`; return t; }; })(),"

// expiryOf returns the expiry of an expiringToken or a singleToken, or the zero time for any other text.
func expiryOf(token string) time.Time {
	ms, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(token, "until-"), "-secret"), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Every attempt to connect calls token(). So a service may end a stream when its token expires. The client uses the
// next token, and receives the messages that it missed.
func TestTokenPerAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		token  string
		want   verdict.Outcome
		reason string
	}{
		"a token per attempt": {token: expiringToken, want: verdict.Pass},
		"the same token for all attempts": {
			token: singleToken, want: verdict.Fail,
			reason: `was disconnected \(status 401: the service refused the token on reconnect: token\(\) returned the same token, [34]\.[0-9] s old; {token} has expired\) after`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &fakeservice.Hub{ID: fakeservice.DecimalID, History: true, Allow: func(r *http.Request) (expiry time.Time, err error) {
				token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
				if expiry = expiryOf(token); expiry.Before(time.Now()) {
					return expiry, fmt.Errorf("%s has expired", token)
				}
				return expiry, nil
			}}
			server := h.Start(t)
			description := describeHub(t, c.token+"connect: { url: '{base}/sub/{topic}', headers: { Authorization: 'Bearer {token}' } },")
			r := begin(t, nil, append(publishFlags(description, server.URL),
				"--prefix", "token-", "--connections", "16", "--connections-per-vu", "16", "--seconds", "14", "--token-ttl", "3")...)
			v := r.verdict()
			require.Equal(t, c.want, v.Verdict, r.out.String())
			require.NotContains(t, r.out.String(), "-secret")
			if c.want == verdict.Pass {
				require.Zero(t, v.Messages.Missed)
				require.Equal(t, 16, v.Connections.Completed)
				require.GreaterOrEqual(t, v.Connections.Reconnected, 16)
				return
			}
			require.Regexp(t, c.reason, reasons(v))
		})
	}
}

// A Mercure hub ends a stream before its JWT expires, and responds with 401 to an expired JWT.
func TestMercureAcceptsTheNextJWT(t *testing.T) {
	t.Parallel()
	const mint = `import crypto from 'k6/crypto';
		import encoding from 'k6/encoding';
		const part = (value) => encoding.b64encode(JSON.stringify(value), 'rawurl');
		const jwt = (ttl) => {
			const signingInput = part({ alg: 'HS256', typ: 'JWT' }) + '.' + part({ exp: Math.floor(Date.now() / 1000) + ttl, mercure: { subscribe: ['*'] } });
			return signingInput + '.' + crypto.hmac('sha256', __ENV.SUBSCRIBER_JWT_KEY, signingInput, 'base64rawurl');
		};
		`
	r := startService(t, "mercure", services.Options{Tokens: true})
	r.Service = changeModule(t, "mercure", "export default", mint+"export default", "token: () => __ENV.SUBSCRIBE_TOKEN || '',", "token: (ttl) => jwt(ttl),")
	// The hub ends a stream after 80 to 100 % of the remaining lifetime of its JWT, minus 5 s. By then, each stream has
	// received a message.
	v := soakService(t, r, "jwt-", faulty.Options{}, "--token-ttl", "12", "--connections-per-vu", fmt.Sprint(serviceStreams)).verdict()
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
	require.GreaterOrEqual(t, v.Connections.Reconnected, serviceStreams/2)
	require.Zero(t, v.Messages.Missed)
	require.EqualValues(t, serviceStreams*perTopic, v.Messages.Received)
}
