package sseclient

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A malformed response does not show that the server ends each connection after one response.
func TestReuseContinuesAfterAMalformedResponse(t *testing.T) {
	t.Parallel()
	url, accepted, _ := respondEach(t, func(n int) string {
		if n == 2 {
			return "HTTP/1.1 OK\r\n\r\n"
		}
		return okResponse
	})
	c := new(Client)
	t.Cleanup(c.CloseIdle)
	for n, want := range []Reason{ReasonServer, ReasonError, ReasonServer, ReasonServer} {
		end, _ := finish(t, c, url, Callbacks{})
		require.Equal(t, want, end.Reason, "request %d: %s", n+1, end.Message())
	}
	require.EqualValues(t, 2, accepted.Load())
}
