package probe

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
	"github.com/sse-soak/sse-soak/internal/sseclient"
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
		require.NotRegexp(t, `@ts-check|import\(`, result.Module, "the module must have no type checks and no imports, because its folder may be empty")
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

var started = time.Date(2026, 11, 29, 1, 46, 7, 5e8, time.UTC)

// newFindings returns the findings of a probe without streams, whose Pace is 1 s.
func newFindings() *findings {
	f := &findings{session: &session{Config: Config{Pace: time.Second}, requests: &requests{}, started: started}, units: map[*track][]*unit{}}
	f.heartbeat.matches = func(*unit) bool { return false }
	return f
}

// add adds a stream that is open from a time until a minute after the start of the probe.
func (f *findings) add(r role, opened time.Duration, units ...*unit) *track {
	t := &track{role: r, headersAt: started.Add(opened), endedAt: started.Add(time.Minute), open: &stream.Stream{Response: new(sseclient.Response)}}
	f.session.tracks = append(f.session.tracks, t)
	f.units[t] = units
	return t
}

// block returns a block that arrives at a time after the start of the probe. If event and data are empty, the block is
// a comment.
func block(at time.Duration, event, data string) *unit {
	b := service.Block{Event: []byte(event), Data: []byte(data), HasData: event != "" || data != ""}
	b.HasComment = !b.HasData
	return &unit{b, started.Add(at)}
}

func withID(u *unit, id string) *unit {
	u.ID, u.HasID = []byte(id), true
	return u
}
