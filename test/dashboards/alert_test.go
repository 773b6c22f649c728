//go:build dashboards

package dashboards

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Only a killed runner causes the alert RunnerSilent, which reaches the webhook within 30 s. Runners that are
// interrupted or end by themselves cause no alert.
func TestKilledRunnerAlerts(t *testing.T) {
	t.Parallel()
	url, notifications := webhook(t)
	s := startStackWithAlerts(t, url)
	s.soak(30)
	interruptedRunner := s.runner("interrupted", 30, 1, "--execution-segment", "0:1/2", "--execution-segment-sequence", "0,1/2,1")
	s.await(fmt.Sprintf(`sum(runner:soak_streams:open) == %d`, streams+streams/2))
	s.runners[1].Stop(context.Background(), syscall.SIGKILL, 10*time.Second)
	killTime := time.Now()
	interruptedRunner.Stop(context.Background(), syscall.SIGINT, 30*time.Second)
	select {
	case a := <-notifications:
		assert.Less(t, time.Since(killTime), 30*time.Second)
		assert.Equal(t, "firing", a.Status)
		assert.Equal(t, testID+" 2", a.Labels["testid"]+" "+a.Labels["runner"])
		assert.Contains(t, a.Annotations["summary"], fmt.Sprintf("open streams in its last report: %d", streams/2))
	case <-time.After(time.Minute):
		require.Fail(t, "the webhook must receive a request", s.logs())
	}
	s.requireExit(s.runners[0], 0)
	// The alert fires after 20 s of silence in the recording rules, so all three runners must be silent for longer.
	s.await(`count(runner:soak_reports:newest == runner:soak_reports:newest offset 24s) == 3`)
	a := s.querier(time.Second)
	a.Range.Start = killTime
	alerts := a.series(t, `ALERTS{alertname="RunnerSilent"}`)
	assert.NotEmpty(t, alerts)
	for _, alert := range alerts {
		assert.Equal(t, testID+" 2", string(alert.Metric["testid"]+" "+alert.Metric["runner"]))
	}
	a.requireValues(t, map[string]float64{"Runners missing": 1})
}

type alert struct {
	Status              string
	Labels, Annotations map[string]string
}

// webhook starts a webhook, and returns its URL and a channel that receives each alert RunnerSilent.
func webhook(t *testing.T) (url string, notifications chan alert) {
	t.Helper()
	notifications = make(chan alert, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var message struct{ Alerts []alert }
		if !assert.NoError(t, json.NewDecoder(r.Body).Decode(&message)) {
			return
		}
		for _, a := range message.Alerts {
			if a.Labels["alertname"] == "RunnerSilent" {
				notifications <- a
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, notifications
}
