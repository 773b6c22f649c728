//go:build k8s

package cluster

import (
	"bufio"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// countOutcomes counts the requests in the ledger of a model by their outcome.
func countOutcomes(t *testing.T, url string) map[string]int64 {
	t.Helper()
	resp, err := http.Get(url + "/ledger")
	require.NoError(t, err)
	defer resp.Body.Close()
	counts := map[string]int64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		var row struct {
			Outcome string `json:"outcome"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &row))
		counts[row.Outcome]++
	}
	require.NoError(t, lines.Err())
	return counts
}

// The states of the responses of two runners match the ledger of the model, even during a soak of another service.
func TestFiniteIsExact(t *testing.T) {
	c := connect(t)
	for name, kind := range map[string]struct {
		model, run []string
		verdict    verdict.Outcome
		sentence   string
	}{
		"finite-clean":     {nil, nil, verdict.Pass, "PASS: 1,200 of 1,200 responses complete, 48,000 of 48,000 chunks received"},
		"finite-truncated": {[]string{"--fault", "truncate@20:0.05"}, nil, verdict.Fail, "of 1,200 responses truncated"},
		"finite-abandoned": {nil, []string{"--abandon", "10"}, verdict.Pass, "of 1,200 responses complete"},
	} {
		t.Run(name, func(t *testing.T) {
			url := c.backend(t, append([]string{"model"}, kind.model...)...)
			var otherSoak *soak
			if name == "finite-clean" {
				otherSoak = c.soak(t, "next-to-finite", "--connections", "50", "--runners", "2")
			}
			s := c.command(t, t.TempDir(), append([]string{
				"run", "finite", "--on", "k8s", "--runners", "2", "--rate", "20", "--seconds", "60", "--drain", "10", "--backend-url", url, "--testid", newID(name),
			}, kind.run...)...)
			s.wait(t)
			v := s.verdict(t)
			assert.Equal(t, kind.verdict, v.Verdict)
			assert.Contains(t, s.output(), kind.sentence)
			assert.Regexp(t, `[1-9]\d* requests · \d+ failed`, s.output(), "progress must come from checkpoints")
			outcomes := countOutcomes(t, url)
			require.NotNil(t, v.Responses)
			assert.EqualValues(t, 1200, v.Responses.Started)
			assert.Equal(t, outcomes["complete"], v.Responses.Complete)
			assert.Equal(t, outcomes["truncated"], v.Responses.Truncated)
			assert.Equal(t, outcomes["left"], v.Responses.Abandoned)
			assert.EqualValues(t, 1200, outcomes["complete"]+outcomes["truncated"]+outcomes["left"], "%v", outcomes)
			assert.Zero(t, v.Messages.Missed+v.Messages.Duplicated+v.Messages.Reordered+v.Messages.Corrupted)
			if otherSoak != nil {
				assert.Equal(t, 0, otherSoak.wait(t), "%s", otherSoak.output())
				assert.Equal(t, 50, otherSoak.verdict(t).Connections.Completed)
			}
			c.requireNothingLeft(t)
		})
	}
}
