package run

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/run/live"
	"github.com/sse-soak/sse-soak/internal/run/target"
)

func TestUnreachableModelHasAReason(t *testing.T) {
	t.Parallel()
	s := &session{Config: Config{Settings: map[string]string{"ABANDON": "1", "MODEL_URL": "http://127.0.0.1:1"}}, targets: target.Targets{target.Remote("http://127.0.0.1:1", "")}, watch: new(live.Watch)}
	s.saveModelLedger(t.Context())
	require.Equal(t, []string{"read the ledger of the model at http://127.0.0.1:1: the response has no ledger, or there was no response; the times at which the model cancelled abandoned requests are unknown"}, s.record.Warnings)
}

func TestActionsWarnInParallel(t *testing.T) {
	t.Parallel()
	s := &session{watch: new(live.Watch)}
	var actions sync.WaitGroup
	for range 50 {
		actions.Go(func() { s.warn("x") })
	}
	actions.Wait()
	require.Len(t, s.record.Warnings, 50)
}
