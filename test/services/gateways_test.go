package services

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/internal/model/numbered"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// Each gateway forwards a complete response in order. TestFiniteThroughLiteLLM in test/e2e requires the same of
// LiteLLM, whose start takes a minute of CPU time.
func TestGatewaysForwardResponses(t *testing.T) {
	for _, name := range slices.DeleteFunc(Gateways(), func(name string) bool { return name == "litellm" }) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := httptest.NewServer(model.New(model.Config{
				Order: model.Order{Chunks: 20, Delay: time.Millisecond}, Keep: 100, Log: slog.New(slog.DiscardHandler),
			}))
			t.Cleanup(upstream.Close)
			r, s := startService(t, name, Options{Upstream: upstream.URL})
			requireResponse(t, r, s)
		})
	}
}

// requireResponse requests a response with 20 chunks and checks them.
func requireResponse(t *testing.T, r *Instance, s *service.Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const id = "first"
	v := service.Values{Base: r.URL, ID: id, Prompt: "soak id=" + id, Token: r.SubscribeToken}
	opened, err := new(stream.Client).Open(ctx, stream.Fill(&s.Connect, &v))
	require.NoError(t, err)
	defer opened.Close()
	require.Equal(t, http.StatusOK, opened.Status)
	var body []byte
	for {
		part, err := opened.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		body = append(body, part.Data...)
	}
	remaining := body
	for k := 1; k <= 20; k++ {
		var token numbered.Token
		var found bool
		token, remaining, found = numbered.Next(remaining)
		require.True(t, found && token.Valid(id) && token.K == k, "chunk %d of:\n%s", k, body)
	}
	_, _, found := numbered.Next(remaining)
	require.False(t, found, "%s", body)
}
