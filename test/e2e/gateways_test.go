//go:build e2e

package e2e

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/services"
)

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
	prompts := filepath.Join(t.TempDir(), "prompts")
	lines := strings.Repeat("\"soak id={id}\"\n", 9) + "\"soak id={id} fault=truncate@10\"\n"
	require.NoError(t, os.WriteFile(prompts, []byte(lines), 0o600))
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
