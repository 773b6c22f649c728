package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/memory"
	"github.com/sse-soak/sse-soak/test/module"
)

// answer returns a handler that responds to each POST with blocks. %d in a block is the number of the request.
func answer(blocks ...string) http.Handler {
	var requests atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		n := requests.Add(1)
		for _, block := range blocks {
			fmt.Fprintf(w, "%s\n\n", strings.ReplaceAll(block, "%d", fmt.Sprint(n)))
			_ = http.NewResponseController(w).Flush()
		}
	})
}

func TestFiniteResponses(t *testing.T) {
	t.Parallel()
	ask := Request{Method: "POST", Body: `{"question":"{prompt}"}`}
	for _, c := range []struct {
		name   string
		blocks []string
		want   []string
		notes  []string
	}{
		{"an event", []string{`event: piece
data: {"n":0,"text":"a"}`, `event: piece
data: {"n":1,"text":"b"}`, `event: piece
data: {"n":2,"text":"c"}`, "event: finished\ndata: {}"},
			[]string{`"message":{"event":"piece","seq":"json:$.n","content":"json:$.text","per":"request"}`, `"end":{"by":"event","done":{"event":"finished"}}`},
			[]string{"failed: { event: 'error' },", "counts up from 0", "ended 3 responses"}},
		{"an event after one without a number", []string{"event: start\ndata: {}", `event: piece
data: {"n":1,"text":"a"}`, `event: piece
data: {"n":2,"text":"b"}`, `event: piece
data: {"n":3,"text":"c"}`, "event: finished\ndata: {}"},
			[]string{`"message":{"event":"piece","seq":"json:$.n","content":"json:$.text","per":"request"}`},
			[]string{"counts up from 1"}},
		{"a value, and numbers of all events", []string{`data: {"type":"start","i":1,"id":"r%d"}`, `data: {"type":"part","i":2,"delta":"a","id":"r%d"}`,
			`data: {"type":"part","i":3,"delta":"b","id":"r%d"}`, `data: {"type":"end","i":4,"id":"r%d"}`},
			[]string{`"message":{"seq":"json:$.i","content":"json:$.delta","per":"request"}`, `"done":{"json":"$.type","is":"end"}`},
			[]string{"counts up from 1"}},
		{"a boolean, after pings", []string{`data: {"text":"a","done":false}`, "event: ping\ndata: {}", `data: {"text":"b","done":false}`, `data: {"text":"","done":true,"took":%d}`},
			[]string{`"heartbeat":{"event":"ping"}`, `"done":{"json":"$.done","is":"true"}`},
			[]string{"cannot be detected"}},
		{"text", []string{"data: word 0", "data: word 1", "data: word 2", "data: END"},
			[]string{`"message":{"seq":"data:^word ([0-9]+)$","per":"request"}`, `"done":{"data":"END"}`}, nil},
		{"an API", []string{`data: {"choices":[{"delta":{"role":"assistant","content":""}}]}`, `data: {"choices":[{"delta":{"content":"a"}}]}`,
			`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`, "data: [DONE]"},
			[]string{`"content":"json:$.choices[0].delta.content"`, `"failed":[{"json":"$.error"},{"event":"error"}]`}, []string{"--service openai-chat"}},
		{"an API with [DONE] after the terminal event", []string{`event: response.output_text.delta
data: {"delta":"a","i":0}`, "event: response.completed\ndata: {}", "data: [DONE]"},
			[]string{`"heartbeat":{"data":"[DONE]"}`, `"failed":[{"event":"response.failed"}`}, []string{"--service openai-responses"}},
		{"an API whose answers are incomplete", []string{`event: response.output_text.delta
data: {"delta":"a","i":0}`, "event: response.incomplete\ndata: {}", "data: [DONE]"},
			[]string{`"done":[{"event":"response.completed"},{"event":"response.incomplete"}]`, `"failed":[{"event":"response.failed"}`}, []string{"--service openai-responses"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := probe(t, answer(c.blocks...), Config{URL: base + "/ask", Connect: ask, Length: 20 * time.Second})
			for _, part := range c.want {
				require.Contains(t, d.json, part)
			}
			for _, note := range c.notes {
				require.Contains(t, d.notes, note)
			}
			require.NotNil(t, d.Finite)
		})
	}
}

func TestNumberedModelAPIs(t *testing.T) {
	t.Parallel()
	messages := `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"{prompt}"}]}`
	for _, c := range []struct{ path, body, message, module string }{
		{"/v1/chat/completions", messages, `{"content":"json:$.choices[0].delta.content","per":"request"}`, "openai-chat"},
		{"/v1/messages", messages, `{"content":"json:$.delta.text","per":"request"}`, "anthropic-messages"},
		{"/v1/responses", `{"model":"m","stream":true,"input":"{prompt}"}`, `{"seq":"json:$.sequence_number","content":"json:$.delta","per":"request"}`, "openai-responses"},
	} {
		server := model.New(model.Config{Order: model.Order{Chunks: 8}, Keep: 100, Log: slog.New(slog.DiscardHandler)})
		d := probe(t, server, Config{URL: base + c.path, Connect: Request{Method: "POST", Body: c.body}, Length: 20 * time.Second})
		require.Contains(t, d.json, `"message":`+c.message)
		require.Contains(t, d.module, "--service "+c.module)
	}
}

func TestPromptNeedsFiniteResponses(t *testing.T) {
	t.Parallel()
	truncated := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: a\n\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	const noEnd = "no event follows the content, ends every response and occurs nowhere else; write the description manually (docs/finite.md)"
	for _, c := range []struct {
		service http.Handler
		method  string
		remedy  string
	}{
		{new(fakeservice.Hub), "GET", "at least one response did not end within 1 s; probe for longer (--seconds)"},
		{truncated, "GET", "at least one response failed: the response was truncated; probe again"},
		{answer("data: a", "data: %d"), "POST", noEnd},
		{answer("event: result\ndata: %d"), "POST", noEnd},
		{answer("data: a", "data: %d", ": done"), "POST", noEnd},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, err := Run(t.Context(), Config{
				URL: base + "/sub/{topic}", Connect: Request{Method: c.method, Headers: []string{"X: {prompt}"}},
				Streams: 3, Pace: 40 * time.Millisecond, Length: time.Second, Dial: memory.Serve(t, c.service),
			})
			require.EqualError(t, err, "{prompt} requires responses that end with a terminal event, but "+c.remedy)
		})
	}
}

func TestKnownAPIsEqualTheirModules(t *testing.T) {
	t.Parallel()
	for _, known := range apis {
		source, err := os.ReadFile(filepath.Join("..", "..", "..", "load-tests", "services", known.module+".js"))
		require.NoError(t, err)
		var described struct {
			End struct{ Done, Failed, Incomplete json.RawMessage }
		}
		require.NoError(t, json.Unmarshal(module.Evaluate(t, string(source)), &described))
		if known.done != nil {
			require.JSONEq(t, string(described.End.Done), string(toJSON(known.done)))
		}
		require.JSONEq(t, string(described.End.Failed), string(toJSON(known.failed)), known.module)
		if known.incomplete != nil || described.End.Incomplete != nil {
			require.JSONEq(t, string(described.End.Incomplete), string(toJSON(known.incomplete)), known.module)
		}
	}
}
