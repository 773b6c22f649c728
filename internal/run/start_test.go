package run

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// A run that cannot start, or that Ctrl-C stops before the load, starts no runner. Its folder is removed if it has
// nothing but the manifest.
func TestRunThatDoesNotStart(t *testing.T) {
	t.Parallel()
	const stopped = "stopped before the start, so no load was generated"
	interruptedAt := func(path string) func(t *testing.T, r *rig) {
		return func(t *testing.T, r *rig) {
			r.describe(t, intervalService)
			r.config.Plan.BackendURL = serve(t, func(_ http.ResponseWriter, req *http.Request) {
				if req.URL.Path == path {
					r.stop()
					<-req.Context().Done()
				}
			})
		}
	}
	for name, c := range map[string]struct {
		edit       func(t *testing.T, r *rig)
		want       string // in the error
		isUsage    bool
		keepFolder bool
		drivers    []string // nil: local
	}{
		"no service": {func(_ *testing.T, r *rig) { r.service.Close() }, "/event/connect?…: nothing is listening there (connection refused); without --service", false, false, nil},
		"no k6":      {func(_ *testing.T, r *rig) { r.k6 = filepath.Join(r.folder, "missing") }, "", false, true, []string{"parts", "kubernetes"}},
		"no nginx for HTTP/2": {func(_ *testing.T, r *rig) {
			r.config.Plan.BackendURL, r.config.Plan.HTTPVersion, r.config.NoNginx = "", plan.HTTP2, true
		}, "remove --no-nginx", false, false, nil},
		"an action after the load":        {func(_ *testing.T, r *rig) { r.config.At = []string{"15s late: true"} }, "the action late must start before 15s, the end of the load, got 15s", true, false, nil},
		"an address that is in use":       {func(_ *testing.T, r *rig) { r.config.Live = r.service.Listener.Addr().String() }, "name another address", true, true, nil},
		"Ctrl-C before the checks":        {func(_ *testing.T, r *rig) { r.stop() }, stopped, false, false, []string{"local", "kubernetes"}},
		"Ctrl-C during the first request": {interruptedAt("/healthz"), stopped, false, false, nil},
		"Ctrl-C during the trial":         {interruptedAt("/soak-topic-0"), stopped, false, false, nil},
		"a description that does not fit": {func(t *testing.T, r *rig) {
			r.describe(t, intervalService)
			r.config.Plan.BackendURL = serve(t, http.NotFound)
		}, "answered 404 Not Found", false, false, nil},
		"Ctrl-C during the preparation": {func(t *testing.T, r *rig) {
			r.config.Plan.BackendURL = serve(t, func(w http.ResponseWriter, req *http.Request) {
				if _, err := os.Stat(string(r.dir())); err == nil {
					r.stop()
					<-req.Context().Done()
					return
				}
				silentStream(w, req)
			})
		}, stopped, false, false, nil},
	} {
		if c.drivers == nil {
			c.drivers = []string{"local"}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withDrivers(t, "", func(t *testing.T, r *rig, drive driverOfRig) {
				c.edit(t, r)
				_, _, err := drive(t, r)
				if c.want != "" {
					require.ErrorContains(t, err, c.want)
					require.Equal(t, c.isUsage, errors.As(err, new(UsageError)))
				}
				if c.want == stopped && r.config.On == "local" {
					require.EqualError(t, err, stopped)
				}
				require.Empty(t, r.pids())
				files, err := os.ReadDir(r.config.Out)
				require.NoError(t, err)
				require.Equal(t, c.keepFolder, len(files) > 0, "%v", files)
			}, c.drivers...)
		})
	}
}
