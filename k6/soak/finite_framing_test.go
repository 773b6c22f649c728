package soak

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// framings lists bodies of responses with the text "aé🙂" in three chunks, and their results by the HTML standard (9.2.5
// and 9.2.6).
var framings = []struct {
	name, body string
	state      ledger.ResponseState
	corrupted  uint64
	missed     uint64
}{
	{"LF", chunk0 + chunk1 + chunk2 + done, complete, 0, 0},
	{"CR", strings.ReplaceAll(chunk0+chunk1+chunk2+done, "\n", "\r"), complete, 0, 0},
	{"CRLF", strings.ReplaceAll(chunk0+chunk1+chunk2+done, "\n", "\r\n"), complete, 0, 0},
	{"mixed line ends", strings.TrimSuffix(chunk0, "\n") + "\r" + strings.TrimSuffix(chunk1, "\n") + "\r\n" + strings.ReplaceAll(chunk2, "\n\n", "\r\n\r") + done, complete, 0, 0},
	{"a byte order mark", "\xEF\xBB\xBF" + chunk0 + chunk1 + chunk2 + done, complete, 0, 0},
	{"a byte order mark later is part of a field's name", "\n\xEF\xBB\xBF" + chunk0 + chunk1 + chunk2 + done, complete, 0, 1},
	{"no space", strings.ReplaceAll(chunk0+chunk1+chunk2+done, ": ", ":"), complete, 0, 0},
	{"two spaces", chunk0 + chunk1 + chunk2 + statedText + "data:  [DONE]\n\n", truncated, 1, 0},
	{"a tab", chunk0 + chunk1 + chunk2 + statedText + "data:\t[DONE]\n\n", truncated, 1, 0},
	{"lines of data", "data: {\"n\":0,\ndata: \"text\":\ndata:\"a\"}\n\n" + chunk1 + chunk2 + done, complete, 0, 0},
	{"comments", ": hello\n\n" + chunk0 + "data: {\"n\":1,\n: ping\n:\ndata: \"text\":\"é\"}\n\n:\n\n" + chunk2 + ": ping\n" + done + ": bye\n\n", complete, 0, 0},
	{"blocks without data are not events", chunk0 + "id: 7\n\nretry: 5\n\nevent: error\n\n" + chunk1 + "event: finished\n\nunknown: x\n\n" + chunk2 + done, complete, 0, 0},
	{"a terminal event without data is ignored", chunk0 + chunk1 + chunk2 + statedText + "event: finished\n\n", truncated, 0, 0},
	{"a terminal event with empty data", chunk0 + chunk1 + chunk2 + statedText + "event: finished\ndata\n\n", complete, 0, 0},
	{"an event with empty data", chunk0 + "data:\n\n" + chunk1 + chunk2 + done, complete, 1, 0},
	{"an unknown event with empty data", chunk0 + "event: tick\ndata:\n\n" + chunk1 + chunk2 + done, complete, 0, 0},
	{"half a character in an event", chunk0 + "data: {\"n\":1,\"text\":\"\xC3\"}\n\n" + chunk2 + done, complete, 1, 0},
	{"half a character at the end", chunk0 + "data: {\"n\":1,\"text\":\"\xC3", truncated, 0, 0},
	{"half of the JSON", chunk0 + "data: {\"n\":1,\"text\":\"\n\n" + chunk2 + done, complete, 1, 0},
	{"an escaped character", chunk0 + `data: {"n":1,"text":"\u00e9"}` + "\n\n" + `data: {"n":2,"text":"\ud83d\ude42"}` + "\n\n" + done, complete, 0, 0},
	{"a long line", `data: {"n":0,"pad":"` + strings.Repeat("x", 60_000) + `","text":"a"}` + "\n\n" + chunk1 + chunk2 + done, complete, 0, 0},
	{"a line over the limit", chunk0 + `data: {"n":1,"pad":"` + strings.Repeat("x", 70_000) + `","text":"é"}` + "\n\n" + chunk2 + done, truncated, 0, 0},
	{"no blank line at the end", chunk0 + chunk1 + chunk2 + statedText + "data: [DONE]\n", truncated, 0, 0},
	{"no line end at the end", chunk0 + chunk1 + chunk2 + statedText + "data: [DONE]", truncated, 0, 0},
	{"CRLF and no blank line at the end", chunk0 + chunk1 + chunk2 + statedText + "data: [DONE]\r\n", truncated, 0, 0},
	{"a blank line of CR at the end", chunk0 + chunk1 + chunk2 + statedText + "data: [DONE]\n\r", complete, 0, 0},
	{"blank lines", "\n\r\n\r" + chunk0 + "\n\n" + chunk1 + "\r\r" + chunk2 + done + "\n\r\n", complete, 0, 0},
	{"an event after the terminal event", chunk0 + chunk1 + chunk2 + done + "event: tick\ndata:\n\n", afterDone, 0, 0},
	{"half an event after the terminal event", chunk0 + chunk1 + chunk2 + done + "data: {", complete, 0, 0},
	{"nothing but comments", ": ping\n\n", empty, 0, 0},
	{"nothing but a terminal event", "data: [DONE]\n\n", empty, 0, 0},
}

const (
	chunk0     = "data: {\"n\":0,\"text\":\"a\"}\n\n"
	chunk1     = "data: {\"n\":1,\"text\":\"é\"}\n\n"
	chunk2     = "event: message\ndata: {\"n\":2,\"text\":\"🙂\"}\n\n"
	statedText = "event: whole\ndata: {\"whole\":\"aé🙂\"}\n\n"
	done       = statedText + "data: [DONE]\n\n"

	complete, truncated = ledger.ResponseComplete, ledger.ResponseTruncated
	afterDone, empty    = ledger.ResponseAfterDone, ledger.ResponseEmpty
)

const framingService = `{
	name: "framing", connect: {method: "POST", url: "{base}/", body: '{"id":"{id}","case":"{prompt}"}', maxEventSize: 65536}, heartbeat: {comment: true},
	message: {event: "message", seq: "json:$.n", content: "json:$.text", per: "request"},
	end: {by: "event", done: [{data: "[DONE]"}, {event: "finished"}], failed: {event: "error"}, stated: {event: "whole", text: "json:$.whole"}},
}`

// A framingServer responds with the body that a request names, in small pieces if the request contains "bytes". It
// records the body of each response.
type framingServer struct {
	gzip  bool
	mu    sync.Mutex
	cases map[string]int // index in framings, by the id of the response
}

func (s *framingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct{ ID, Case string }
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var number int
	var pieces string
	_, _ = fmt.Sscan(request.Case, &number, &pieces)
	s.mu.Lock()
	s.cases[request.ID] = number
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	out, flush := io.Writer(w), http.NewResponseController(w).Flush
	if s.gzip {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		out, flush = z, func() error { _ = z.Flush(); return http.NewResponseController(w).Flush() }
	}
	body := framings[number].body
	length := len(body)
	if pieces == "bytes" {
		length = 1 + len(body)/1000 // each piece is an HTTP chunk
	}
	for len(body) > 0 {
		piece := body[:min(length, len(body))]
		_, _ = io.WriteString(out, piece)
		_ = flush()
		body = body[len(piece):]
	}
}

// The result of a response does not depend on line ends, or on the boundaries of chunks, packets and characters.
func TestFiniteReadsFramesByTheStandard(t *testing.T) {
	t.Parallel()
	for _, coding := range []string{"none", "gzip"} {
		t.Run(coding, func(t *testing.T) {
			t.Parallel()
			s := &framingServer{gzip: coding == "gzip", cases: map[string]int{}}
			var prompts []string
			for i := range framings {
				prompts = append(prompts, fmt.Sprintf(`"%d whole"`, i), fmt.Sprintf(`"%d bytes"`, i))
			}
			got := finiteOf(t, serve(t, s.ServeHTTP), framingService, fmt.Sprintf(`{concurrency: 0, rate: %d, seconds: 1, maxInFlight: 1000, acceptEncoding: %q, prompts: [%s]}`,
				len(prompts), coding, strings.Join(prompts, ",")))
			require.Equal(t, int64(len(prompts)), got.Ended())
			states, corrupted, missed := map[string]ledger.ResponseState{}, map[string]uint64{}, map[string]uint64{}
			reasons := map[string]string{}
			for _, finding := range got.Findings {
				states[finding.ID], corrupted[finding.ID], missed[finding.ID], reasons[finding.ID] = finding.State, finding.Counts.Corrupted, finding.Counts.Missed, finding.Reason
			}
			for id, number := range s.cases {
				want, state := framings[number], complete
				if other, faulty := states[id]; faulty {
					state = other
				}
				assert.Equal(t, want.state, state, "%s: %s", want.name, reasons[id])
				assert.Equal(t, want.corrupted, corrupted[id], "%s: %s", want.name, reasons[id])
				assert.Equal(t, want.missed, missed[id], want.name)
			}
		})
	}
}
