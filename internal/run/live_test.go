package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLivePageAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "0": "", "false": "", "1": "127.0.0.1:0", "true": "127.0.0.1:0", ":8080": ":8080", "10.0.0.1:80": "10.0.0.1:80"} {
		require.Equal(t, want, liveAddress(text), text)
	}
}

// An address that is in use is reported before the load.
func TestRunWithoutALivePageDoesNotStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.config.Live = r.service.Listener.Addr().String()
	_, err := r.session(r.config).run(r.graceful, r.force)
	require.ErrorAs(t, err, &UsageError{})
	require.ErrorContains(t, err, "name another address")
	require.Empty(t, r.pids())
}
