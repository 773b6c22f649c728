//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/internal/verdict"
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

// completingGateway starts a gateway that completes a truncated response, as LiteLLM does: it adds a finish_reason and
// [DONE].
func completingGateway(t *testing.T, model string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := http.NewRequestWithContext(r.Context(), r.Method, model+r.URL.Path, r.Body)
		if err != nil {
			panic(err)
		}
		request.Header = r.Header.Clone()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		maps.Copy(w.Header(), response.Header)
		w.WriteHeader(response.StatusCode)
		done := false
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			done = done || lines.Text() == "data: [DONE]"
			fmt.Fprintln(w, lines.Text())
			_ = http.NewResponseController(w).Flush()
		}
		if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") && !done {
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// If a gateway completes a truncated response, the numbers in its text still show the loss.
func TestFiniteThroughAGatewayThatCompletesResponses(t *testing.T) {
	t.Parallel()
	m, url := startModel(t)
	prompts := filepath.Join(t.TempDir(), "prompts")
	lines := strings.Repeat("\"soak id={id}\"\n", 9) + "\"soak id={id} fault=truncate@10\"\n"
	require.NoError(t, os.WriteFile(prompts, []byte(lines), 0o600))
	v := begin(t, nil, "finite", "--service", "openai-chat", "--backend-url", completingGateway(t, url), "--rate", "12", "--seconds", "5",
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
