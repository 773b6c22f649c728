//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// expiringToken is the field token of a description. A token contains its expiry in ms since 1970, which is TOKEN_TTL
// after the call.
const expiringToken = "token: (ttl = 60) => `until-${Date.now() + ttl * 1000}-secret`,"

// singleToken is like expiringToken, but returns the same token for all connections, which is a mistake.
const singleToken = "token: (() => { let t; return (ttl) => { t ??= `until-${Date.now() + ttl * 1000}-secret`; return t; }; })(),"

// expiryOf returns the expiry of an expiringToken or a singleToken, or the zero time for any other text.
func expiryOf(token string) time.Time {
	ms, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(token, "until-"), "-secret"), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Every attempt to connect calls token(). So a service that ends a stream when its token expires is correct: the
// client uses the next token, and receives the messages that it missed.
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
			description := describeHub(t, c.token)
			text, err := os.ReadFile(description)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(description, []byte(strings.Replace(string(text), "{topic}' }", "{topic}', headers: { Authorization: 'Bearer {token}' } }", 1)), 0o600))
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
