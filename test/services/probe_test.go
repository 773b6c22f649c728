package services

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/probe"
	"github.com/sse-soak/sse-soak/internal/service/trial"
)

// probeOptions has the settings of each service, and the duration of its probe.
var probeOptions = map[string]struct {
	options Options
	length  time.Duration
}{
	"nchan":              {Options{Heartbeat: 2 * time.Second}, 12 * time.Second},
	"mercure":            {Options{Heartbeat: 2 * time.Second}, 12 * time.Second},
	"django-eventstream": {Options{}, 32 * time.Second}, // the first heartbeat arrives after 20 s
	"pocketbase":         {Options{Lifetime: 5 * time.Second}, 12 * time.Second},
	"sse-starlette":      {Options{Heartbeat: 2 * time.Second}, 12 * time.Second},
}

// The description that a probe writes works without changes. It recognizes messages, heartbeats and resumes like the
// manual description.
func TestProbeDescribesEachService(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := probeOptions[name]
			r, manual := startService(t, name, c.options)
			input := r.ProbeInput()
			result, err := probe.Run(t.Context(), probe.Config{
				URL: r.URL + input.Stream, Publish: input.Publish, SecondRequest: input.SecondRequest, Name: name + "-probed", PublishToken: r.PublishToken,
				Streams: 3, Length: c.length, Pace: 300 * time.Millisecond,
			})
			require.NoError(t, err)
			t.Log(result.Module)
			file := filepath.Join(t.TempDir(), "probed.js")
			require.NoError(t, os.WriteFile(file, []byte(result.Module), 0o600))
			s := description(t, file)
			for _, field := range []string{"message.seq", "message.run", "message.sentAt", "message.sum", "heartbeat.event", "heartbeat.comment", "resume.gap", "connect.then.event", "connect.then.client", "end.by"} {
				if name != "mercure" || field != "end.by" { // the probe is too short to see an end
					require.Equal(t, orDefault(manual.Source(field), field), orDefault(s.Source(field), field), field)
				}
			}
			require.Equal(t, manual.Resume.Header, s.Resume.Header)
			if c.options.Heartbeat > 0 {
				require.Equal(t, c.options.Heartbeat, s.HeartbeatEvery)
			}
			require.NoError(t, trial.Run(t.Context(), trial.Config{Service: s, Base: r.URL, Topic: "soak-topic-0", ID: "trial", Marker: "m", PublishToken: r.PublishToken}))
			require.NoError(t, trial.Run(t.Context(), trial.Config{Service: withoutHeartbeat(manual), Base: r.URL, Topic: "soak-topic-1", ID: "trial", Marker: "m", PublishToken: r.PublishToken}))
		})
	}
}

// orDefault returns the default of an omitted field.
func orDefault(value, field string) string {
	if value == "" && field == "end.by" {
		return `"client"`
	}
	return value
}

// withoutHeartbeat returns a description without its interval of heartbeats, because the service has another interval.
func withoutHeartbeat(s *service.Service) *service.Service {
	out := *s
	out.HeartbeatEvery = 0
	return &out
}
