package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/internal/model/numbered"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/stream"
	"github.com/sse-soak/sse-soak/test/untested"
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

// The official clients of OpenAI and Anthropic read streams and whole responses of the numbered model, and report its
// errors.
func TestOfficialClientsReadTheNumberedModel(t *testing.T) {
	t.Parallel()
	root, err := findRoot()
	require.NoError(t, err)
	ready, err := buildPath(setup{root: root}, "openai", "python", "ready")
	if missing := (*MissingError)(nil); errors.As(err, &missing) {
		untested.SkipMissing(t, err.Error())
	}
	require.NoError(t, err)
	server := httptest.NewServer(model.New(model.Config{
		Order: model.Order{Chunks: 3}, Keep: 100, Log: slog.New(slog.DiscardHandler),
	}))
	defer server.Close()
	python := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(ready), "bin", "python"),
		filepath.Join(root, "test", "services", "python", "llm_clients.py"), "--url", server.URL)
	python.WaitDelay = time.Second
	out, err := python.Output()
	require.NoError(t, err)
	ends := map[string]string{
		"chat/none": "stop", "chat_whole/none": "stop", "responses/none": "completed", "responses_whole/none": "completed",
		"anthropic_stream/none": "end_turn", "anthropic_whole/none": "end_turn",
		"chat/length": "length", "chat_whole/length": "length", "responses_whole/length": "incomplete",
		"anthropic_stream/length": "max_tokens", "anthropic_whole/length": "max_tokens",
	}
	completeCount := 0
	for line := range strings.Lines(string(out)) {
		var answer struct {
			Read, Fault, Text, End, Error string
			Tokens                        int
		}
		require.NoError(t, json.Unmarshal([]byte(line), &answer))
		end, complete := ends[answer.Read+"/"+answer.Fault]
		if !complete {
			require.NotEmpty(t, answer.Error, line)
			continue
		}
		completeCount++
		require.Empty(t, answer.Error, line)
		require.Equal(t, end, answer.End)
		require.Equal(t, 3, answer.Tokens)
		remaining := answer.Text
		for k := 1; k <= 3; k++ {
			var token numbered.Token
			var found bool
			token, remaining, found = numbered.Next(remaining)
			require.True(t, found && token.Valid(answer.Read), "chunk %d must be valid: %s", k, line)
			require.Equal(t, fmt.Sprint(k, 3), fmt.Sprint(token.K, token.N))
		}
	}
	require.Equal(t, len(ends), completeCount)
}
