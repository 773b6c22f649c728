package services

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/internal/model/numbered"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// Each gateway forwards a complete response in order, before and after a restart.
func TestGatewaysForwardResponses(t *testing.T) {
	for _, name := range Gateways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := httptest.NewServer(model.New(model.Config{
				Order: model.Order{Chunks: 20, Delay: time.Millisecond}, Keep: 100, Log: slog.New(slog.DiscardHandler),
			}))
			t.Cleanup(upstream.Close)
			r, s := startService(t, name, Options{Upstream: upstream.URL})
			requireResponse(t, r, s, "first")
			require.NoError(t, r.Restart(t.Context()))
			requireResponse(t, r, s, "second")
		})
	}
}

// requireResponse requests a response with 20 chunks and checks them.
func requireResponse(t *testing.T, r *Instance, s *service.Service, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
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
