package trial

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	s, err := service.Parse([]byte(`{"name":"x","connect":{"method":"POST","url":"{base}/","body":"{prompt}"},
		"message":{"content":"json:$.text"},"end":{"by":"event","done":{"event":"end"},"failed":{"event":"error"}}}`))
	require.NoError(t, err)
	for body, want := range map[string]struct{ failure, note string }{
		"data: {\"text\":\"a\"}\n\nevent: end\ndata: {}\n\n":   {},
		"data: {\"text\":\"a\"}\n\nevent: error\ndata: {}\n\n": {},
		"data: {\"text\":\"a\"}\n\n":                           {"", `had no terminal event (end.done is {"event":"end"}): the stream ended `},
		"data: {\"txt\":\"a\"}\n\nevent: end\ndata: {}\n\n":    {`message.content: the response had no content: 2 blocks arrived`, ""},
		"": {`message.content: the response had no content: nothing arrived; the stream ended `, ""},
		"data: " + strings.Repeat("a", 1<<20+1) + "\n\n": {`; set connect.maxEventSize to a larger value; message.content is "json:$.text"`, ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(body))
		}))
		note := ""
		err := Answer(t.Context(), Config{Service: s, Base: server.URL, ID: "t", Prompt: "hi", Patience: 10 * time.Second, Note: func(text string) { note = text }})
		server.Close()
		if want.failure == "" {
			require.NoError(t, err, body)
		} else {
			require.ErrorContains(t, err, want.failure)
		}
		if want.note == "" {
			require.Empty(t, note, body)
		} else {
			require.Contains(t, note, want.note)
		}
	}
}
