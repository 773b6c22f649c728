package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/terminal"
)

func TestLivePageAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "0": "", "false": "", "1": "127.0.0.1:0", "true": "127.0.0.1:0", ":8080": ":8080", "10.0.0.1:80": "10.0.0.1:80"} {
		require.Equal(t, want, liveAddress(text), text)
	}
}

func TestAddressesToListenOnAreChecked(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"foo", ":99999", ":abc"} {
		r := newRig(t, "")
		r.config.Live = address
		require.EqualError(t, newSession(r.config).complete(time.Now()), `--live must be HOST:PORT or :PORT, got "`+address+`"`)
		r.config.Live, r.config.ControlListen = "", address
		require.EqualError(t, newSession(r.config).complete(time.Now()), `--control-listen must be HOST:PORT or :PORT, got "`+address+`"`)
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

func TestLivePageEndsWithTheVerdict(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	out := new(terminal.Output)
	r.config.Live, r.config.Stdout = "1", out
	r.release()
	outcome, err := r.session(r.config).run(r.graceful, r.force)
	require.NoError(t, err)
	require.NotEmpty(t, outcome)
	require.Regexp(t, `live +http://127\.0\.0\.1:\d+/\n`, out.String())
}
