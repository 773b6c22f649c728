package probe

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/test/memory"
	"github.com/sse-soak/sse-soak/test/module"
)

var publishRequest = Request{URL: "{base}/pub/{topic}", Body: `{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}`}

const base = "http://service.test"

// A description is the result of a probe.
type description struct {
	module string
	notes  string // the module as one line, without comment markers
	json   string
	*service.Service
	variables []string // Result.Variables
}

// probe probes a service at base on a fake clock, by default for 1.6 s. It then calls each use in the same synctest
// bubble.
func probe(t *testing.T, h http.Handler, c Config, uses ...func(t *testing.T, d description, c Config)) (d description) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.Dial, c.Streams, c.Pace = memory.Serve(t, h), 3, 40*time.Millisecond
		if c.URL == "" {
			c.URL, c.Topic = base+"/sub/room-1", "room-1"
		}
		if c.Length == 0 {
			c.Length = 1600 * time.Millisecond
		}
		result, err := Run(t.Context(), c)
		require.NoError(t, err)
		t.Log(result.Module)
		require.NotRegexp(t, `@ts-check|import\(`, result.Module, "the module must have no type checks and imports, because its folder may be empty")
		d.module, d.notes = result.Module, strings.Join(strings.Fields(strings.ReplaceAll(result.Module, "//", "")), " ")
		d.variables = result.Variables
		d.json = string(module.Evaluate(t, result.Module))
		d.Service, err = service.Parse([]byte(d.json))
		require.NoError(t, err)
		for _, use := range uses {
			use(t, d, c)
		}
	})
	return d
}
