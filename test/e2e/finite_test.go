//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/address"
)

// Without a service, the run starts the numbered model and counts each chunk.
func TestFinite(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "finite", "--profile", "smoke")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.EqualValues(t, 200, v.Responses.Complete)
	require.EqualValues(t, 200*40, v.Messages.Received)
	require.Equal(t, v.Messages.Received, v.Messages.Expected)
	require.Zero(t, v.Evidence.Undetectable)
	require.Contains(t, r.out.String(), "PASS: 200 of 200 responses complete, 8,000 of 8,000 chunks received")
	require.Greater(t, v.Responses.TTFT.P50, 50.)
}

// An action kills the model, which truncates the responses in flight, and starts another one later. The faulty
// responses are attributed to the action.
func TestFiniteAttributesResponsesToAnAction(t *testing.T) {
	t.Parallel()
	listen, err := address.Free()
	require.NoError(t, err)
	program := filepath.Join(root, "bin", "backend")
	model := exec.Command(program, "model", "--listen", listen)
	require.NoError(t, model.Start())
	exit := make(chan error, 1)
	go func() { exit <- model.Wait() }()
	t.Cleanup(func() { _ = model.Process.Kill(); <-exit })
	await(t, "the model must be ready", func() bool {
		response, err := http.Get("http://" + listen + "/healthz")
		return err == nil && response.Body.Close() == nil
	})
	restart := fmt.Sprintf("3s deploy: kill -KILL %d; sleep 0.3; %s model --listen %s >/dev/null 2>&1 &", model.Process.Pid, program, listen)
	r := begin(t, nil, "finite", "--profile", "smoke", "--seconds", "8", "--backend-url", "http://"+listen, "--at", restart)
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	e := v.Actions[0].Responses
	require.NotNil(t, e)
	require.Positive(t, e.Faulty[ledger.ResponseTruncated], r.out.String())
	require.EqualValues(t, v.Responses.Truncated, e.Faulty[ledger.ResponseTruncated])
	require.EqualValues(t, v.Responses.Refused, e.Faulty[ledger.ResponseRefused])
	require.Positive(t, e.InFlight)
	require.NotNil(t, e.Drained)
	require.Positive(t, e.Complete, "responses of the second model must be complete")
	require.Nil(t, v.Actions[0].Effect)
}

// The model notices each abandoned request, and its ledger has the time of the cancellation.
func TestFiniteMeasuresCancellationOfTheModel(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "finite", "--profile", "smoke", "--seconds", "4", "--abandon", "30", "--abandon-by", "reset", "--gauge", "model_requests_open")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	c := v.Responses.Cancellation
	require.NotNil(t, c, r.out.String())
	require.Positive(t, c.Checked)
	require.Equal(t, [2]int64{v.Responses.Abandoned, v.Responses.Abandoned}, [2]int64{c.Checked, c.Cancelled})
	require.Positive(t, c.Delay.Max)
	require.Contains(t, strings.Join(strings.Fields(r.out.String()), " "), "model_requests_open: the service continued to answer an abandoned request for")
}
