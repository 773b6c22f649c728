package secret

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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
