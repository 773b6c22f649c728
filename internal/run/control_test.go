package run

import (
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
)

// Runners in a cluster get the address of the reference server of their control group. The server is created with the
// run, unless CONTROL_URL names another one. Without the permission to create it, the run has no control group.
func TestControlGroupInACluster(t *testing.T) {
	t.Parallel()
	const controlURL = "http://soak-t-control.ns.svc:7070"
	for name, c := range map[string]struct {
		setting     string // CONTROL_URL
		url         string
		allowed     bool
		deployments int // number of requests to create a Deployment
	}{
		"created":    {url: controlURL, allowed: true, deployments: 1},
		"forbidden":  {url: controlURL, deployments: 1},
		"configured": {setting: "http://10.20.0.10:7070", url: "http://10.20.0.10:7070", allowed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, ends)
			r.config.Plan.ControlURL = c.setting
			d, operator := r.inCluster(t)
			deployments := 0
			operator.typed.PrependReactor("create", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
				if deployments++; c.allowed {
					return false, nil, nil
				}
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "soak-t-control", nil)
			})
			r.startInCluster(t, d)
			assert.Equal(t, c.deployments, deployments)
			env, _, err := unstructured.NestedSlice(operator.objects, "spec", "runner", "env")
			require.NoError(t, err)
			source, err := plan.SourceOf(func(name string) string {
				i := slices.IndexFunc(env, func(e any) bool { return e.(map[string]any)["name"] == name })
				return env[i].(map[string]any)["value"].(string)
			})
			require.NoError(t, err)
			assert.Equal(t, c.url, source.Text("CONTROL_URL"))
			assert.Equal(t, !c.allowed, strings.Contains(strings.Join(d.record.Warnings, "\n"), "no control group"))
		})
	}
}

// If the reference server cannot be started, the run continues with a warning. A part starts a reference server even if
// it uses a reference server on another machine.
func TestReferenceAddress(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		edit   func(c *Config)
		serves bool
		url    string // "": the URL of the reference server that is started here; "none": no URL
		warns  string
	}{
		"local":           {func(*Config) {}, true, "", ""},
		"disabled":        {func(c *Config) { c.Plan.Control = 0 }, false, "none", ""},
		"remote":          {func(c *Config) { c.Plan.ControlURL = "http://other:7070" }, false, "http://other:7070", ""},
		"address in use":  {func(c *Config) { c.ControlListen = listener.Addr().String() }, false, "none", "CONTROL_LISTEN: listen tcp"},
		"missing program": {func(c *Config) { c.Executable = "/none/soak" }, false, "none", "start reference: "},
		"part with a remote reference and an address in use": {func(c *Config) {
			c.Runner, c.Plan.ControlURL, c.ControlListen = "1/2", "http://other:7070", listener.Addr().String()
		}, false, "http://other:7070", "no reference server on this machine: CONTROL_LISTEN: listen tcp"},
		"part with a remote reference": {func(c *Config) {
			c.Runner, c.Plan.ControlURL = "1/2", "http://other:7070"
		}, true, "http://other:7070", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.config.Executable = sleep // sleep exits at once, because its argument is not a number
			c.edit(&r.config)
			s := r.session(r.config)
			d := s.driver.(*local)
			s.dir = results.Dir(t.TempDir())
			d.serveControl()
			defer d.stopControl(t.Context())
			assert.Equal(t, c.serves, d.control != nil)
			switch c.url {
			case "":
				assert.Contains(t, s.Plan.ControlURL, "http://127.0.0.1:")
			case "none":
				assert.Empty(t, s.Plan.ControlURL)
			default:
				assert.Equal(t, c.url, s.Plan.ControlURL)
			}
			warnings := strings.Join(s.record.Warnings, "\n")
			assert.Contains(t, warnings, c.warns)
			assert.Equal(t, c.warns != "", warnings != "")
		})
	}
}
