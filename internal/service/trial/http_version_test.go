package trial

import (
	"crypto/tls"
	"errors"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// The publisher of a run supports only HTTP/1.1, so the trial must not publish over HTTP/2.
func TestTrialRequiresHTTP1ToPublish(t *testing.T) {
	t.Setenv("K6_INSECURE_SKIP_TLS_VERIFY", "true")
	for onlyHTTP2, want := range map[bool]string{false: "", true: "; a run publishes over HTTP/1.1, so make the service accept HTTP/1.1 too"} {
		s := httptest.NewUnstartedServer(&fakeservice.Hub{})
		s.EnableHTTP2 = true
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if onlyHTTP2 && !slices.Contains(hello.SupportedProtos, "h2") {
				return nil, errors.New("HTTP/2 only")
			}
			return nil, nil //nolint:nilnil // the configuration of the server
		}}
		s.StartTLS()
		t.Cleanup(s.Close)
		err := try(t, Config{Base: s.URL})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "publish.url: POST ")
		require.ErrorContains(t, err, want)
	}
}
