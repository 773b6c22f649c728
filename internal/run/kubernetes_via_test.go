package run

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// On AWS the runners use an address of the service that this machine cannot reach.
func TestBackendVia(t *testing.T) {
	t.Setenv("BACKEND_TOKEN", "secret")
	requests := make(chan string, 1)
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r.URL.Path + " " + r.Header.Get("Authorization")
		http.NotFound(w, r)
	})
	d := &kubernetes{session: newSession(Config{Plan: plan.Default()})}
	d.Plan.BackendURL = "http://10.20.0.10"
	d.Kubernetes.Via = strings.TrimPrefix(address, "http://")
	require.NoError(t, d.reachTarget(context.Background()))
	assert.Equal(t, "http://10.20.0.10", d.targets[0].URL, "for the runners")
	_ = d.targets.Probe(context.Background(), d.Plan.Interval())
	assert.Equal(t, "/healthz Bearer secret", <-requests)
}
