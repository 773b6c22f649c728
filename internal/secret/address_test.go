package secret

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

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
