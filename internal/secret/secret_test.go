package secret

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIsSecretName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Authorization", "authorisation", "auth", "X-Auth-User", "oauth", "authToken", "authentication", "proxy_authorization",
		"authorToken", "access_token", "client_secret", "Set-Cookie", "sessionid", "passwd", "X-Api-Key", "apikey", "key",
		"Ocp-Apim-Subscription-Key", "accessKey", "JWT", "X-Amz-Credential", "signature", "ticket", "sig", "pwd",
	} {
		assert.True(t, IsSecretName(name), name)
		assert.True(t, slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(name), word) }), name)
	}
	for _, name := range []string{
		"X-Kind", "id", "monkey", "keyboard", "design", "topic", "author", "authors", "Author-Name", "co_author", "authority", ":authority",
	} {
		assert.False(t, IsSecretName(name), name)
	}
}

func TestAddressHasNoSecrets(t *testing.T) {
	for address, want := range map[string]string{
		"http://h:9090/prometheus":     "http://h:9090/prometheus",
		"http://joe:sesame@h/":         "http://joe:xxxxx@h/",
		"http://t0ken@h/?api_key=abc":  "http://xxxxx@h/",
		"https://h/x?token=abc#sesame": "https://h/x",
	} {
		u, err := url.Parse(address)
		require.NoError(t, err)
		require.Equal(t, want, Address(u))
	}
}

func TestCommandReplacesSecrets(t *testing.T) {
	t.Parallel()
	got := Command([]string{
		"env", "PUBLISH_TOKEN=hunter2", "CONNECTIONS=5", "bin/soak", "run", "--api-key", "hunter2", "--token=hunter2",
		"--backend-url", "https://me:hunter2@host/?token=hunter2",
		"--at", `30m reload: curl -H "Authorization: Bearer hunter2hunter2" http://host`, "--topics", "12", "--sig", "hunter2", "--token", "--live",
	})
	require.Equal(t, []string{
		"env", "PUBLISH_TOKEN=[redacted]", "CONNECTIONS=5", "bin/soak", "run", "--api-key", "[redacted]", "--token=[redacted]",
		"--backend-url", "https://me:[redacted]@host/?token=[redacted]",
		"--at", `30m reload: curl -H "Authorization: [redacted]" http://host`, "--topics", "12", "--sig", "[redacted]", "--token", "--live",
	}, got)
}
