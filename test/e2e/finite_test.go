//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/services"
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

// startModel starts the numbered model in the process of the test.
func startModel(t *testing.T) (m *model.Server, url string) {
	t.Helper()
	m = model.New(model.Config{
		Order: model.Order{Chunks: 20, Delay: 10 * time.Millisecond, TTFT: 20 * time.Millisecond}, Keep: 10_000,
		Log: slog.New(slog.DiscardHandler),
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- m.Serve(ctx, l) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-result) })
	return m, "http://" + l.Addr().String()
}

// LiteLLM completes a truncated response: it adds a finish_reason and [DONE]. The numbers in the text still show the
// loss.
func TestFiniteThroughLiteLLM(t *testing.T) {
	t.Parallel()
	m, url := startModel(t)
	gateway := startService(t, "litellm", services.Options{Upstream: url})
	prompts := writeFile(t, "prompts", strings.Repeat("\"soak id={id}\"\n", 9)+"\"soak id={id} fault=truncate@10\"\n")
	v := begin(t, gateway.Env, "finite", "--service", gateway.Service, "--backend-url", gateway.URL, "--rate", "6", "--seconds", "10",
		"--prompts", prompts).verdict()
	require.EqualValues(t, 60, v.Responses.Started)
	truncated := 0
	for record := range m.Records("") {
		if record.Outcome == model.Truncated {
			truncated++
		}
	}
	require.NotZero(t, truncated)
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.EqualValues(t, truncated, v.Responses.Truncated, reasons(v))
	require.EqualValues(t, 60-truncated, v.Responses.Complete)
	require.EqualValues(t, 60*20, v.Messages.Expected)
	require.EqualValues(t, 10*truncated, v.Messages.Missed)
	require.Equal(t, v.Messages.Expected, v.Messages.Received+v.Messages.Missed)
}
