package sseclient

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// Over HTTP/1.1, net/http replaces the framing fields of the user. Over HTTP/2, a second content-length makes a request
// malformed (RFC 9113, section 8.1.1).
func TestFramingFieldsOfTheUserAreReplaced(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Received"] = append([]string{r.Proto}, r.Header["Content-Length"]...)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	client := &Client{TLS: func(string) *tls.Config { return &tls.Config{InsecureSkipVerify: true} }}
	t.Cleanup(client.CloseIdle)
	for protocol, want := range map[Protocol][]string{HTTP1: {"HTTP/1.1", "2"}, HTTP2: {"HTTP/2.0", "2"}} {
		r, end := client.Do(t.Context(), &Options{Sharing: Sharing{Protocol: protocol}}, Request{
			URL: server.URL, Method: http.MethodPost, Body: "{}", Header: http.Header{"Content-Length": {"7"}, "Trailer": {"A"}},
		})
		require.Nil(t, end)
		require.Equal(t, want, r.Header["Received"])
		require.NoError(t, r.Body(0).Close())
	}
}
