package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/model/numbered"
)

const testTimeout = time.Minute

func noDelays() Config {
	return Config{Order: Order{Chunks: 6}, Keep: 1000, RetryAfter: 2 * time.Second, Log: slog.New(slog.DiscardHandler)}
}

func start(t testing.TB, config Config) (*Server, string) {
	t.Helper()
	s := New(config)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return s, server.URL
}

// body returns a request body, with an order, that every API accepts.
func body(t testing.TB, order string, stream bool) io.Reader {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"model": "m", "stream": stream, "max_tokens": 100,
		"messages": []any{map[string]any{"role": "user", "content": "Hello.\nsoak " + order}},
	})
	require.NoError(t, err)
	return bytes.NewReader(text)
}

type clientResponse struct {
	*http.Response
	cancel context.CancelFunc
	done   chan struct{} // closed at the end of the body

	mutex sync.Mutex
	text  bytes.Buffer
	end   error // nil: the body ended as announced
}

// post sends a request and reads its response in the background.
func post(t testing.TB, url, path, order string, stream bool) *clientResponse {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, body(t, order, stream))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	r := &clientResponse{Response: response, cancel: cancel, done: make(chan struct{})}
	t.Cleanup(func() { cancel(); <-r.done })
	go func() {
		defer close(r.done)
		defer response.Body.Close()
		_, err := io.Copy(r, response.Body)
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.end = err
	}()
	return r
}

func (r *clientResponse) Write(part []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.text.Write(part)
}

// body returns the bytes that have arrived.
func (r *clientResponse) body() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.text.String()
}

// endText waits for the end of the body and returns how it ended.
func (r *clientResponse) endText(t testing.TB) string {
	t.Helper()
	select {
	case <-r.done:
	case <-time.After(testTimeout):
		require.Fail(t, "the response did not end")
	}
	switch {
	case r.end == nil:
		return "clean"
	case errors.Is(r.end, syscall.ECONNRESET):
		return "reset"
	case errors.Is(r.end, io.ErrUnexpectedEOF):
		return "cut"
	}
	return r.end.Error()
}

func events(body string) []string {
	return strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
}

var terminals = map[string][]string{
	"/v1/chat/completions": {"data: [DONE]"},
	"/v1/responses":        {"event: response.completed", "event: response.incomplete"},
	"/v1/messages":         {"event: message_stop"},
}

type account struct {
	Numbers        []int // of the valid chunks before the terminal event, in the order received
	Corrupt        int
	Terminals      int
	ChunksAfterEnd int // valid chunks after the terminal event
	Failures       int
}

func count(body, path, id string) (a account) {
	for _, event := range events(body) {
		name, _, _ := strings.Cut(event, "\n")
		for _, terminal := range terminals[path] {
			if name == terminal {
				a.Terminals++
			}
		}
		if strings.HasPrefix(event, `data: {"error"`) || name == "event: error" {
			a.Failures++
		}
		if path == "/v1/responses" && name != "event: response.output_text.delta" {
			continue
		}
		token, _, found := numbered.Next(event)
		switch {
		case !found:
		case !token.Valid(id):
			a.Corrupt++
		case a.Terminals > 0:
			a.ChunksAfterEnd++
		default:
			a.Numbers = append(a.Numbers, token.K)
		}
	}
	return a
}

// send sends a request, and returns the status and the body of its response.
func send(t testing.TB, method, url, body string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(content)
}

func records(t testing.TB, url, prefix string) (out []Record) {
	t.Helper()
	_, lines := send(t, http.MethodGet, url+"/ledger?prefix="+prefix, "")
	for line := range strings.Lines(lines) {
		var r Record
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		out = append(out, r)
	}
	return out
}

// awaitRecord returns the only record of an id once its request has ended.
func awaitRecord(t testing.TB, url, id string) Record {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); ; {
		if found := records(t, url, id); len(found) == 1 && found[0].Ended != 0 {
			return found[0]
		} else if time.Now().After(deadline) {
			require.Fail(t, "the ledger must have one record of the id, and the request must have ended", found)
		}
		time.Sleep(time.Millisecond)
	}
}

func paths() (out []string) {
	for _, api := range apis {
		out = append(out, api.path)
	}
	return out
}
