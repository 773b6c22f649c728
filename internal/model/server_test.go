package model

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/model/numbered"
)

func TestEachFaultOnTheWire(t *testing.T) {
	_, url := start(t, noDelays())
	all := []int{1, 2, 3, 4, 5, 6}
	three := all[:3]
	for _, test := range []struct {
		fault   string
		want    account
		ending  string
		outcome Outcome
		sent    int32
	}{
		{"none", account{Numbers: all, Terminals: 1}, "clean", "complete", 6},
		{"truncate", account{Numbers: three}, "clean", "truncated", 3},
		{"truncate@0", account{}, "clean", "truncated", 0},
		{"truncate@99", account{Numbers: all}, "clean", "truncated", 6},
		{"cut@3", account{Numbers: three}, "cut", "truncated", 3},
		{"reset@3", account{Numbers: three}, "reset", "reset", 3},
		{"error@3", account{Numbers: three, Failures: 1}, "clean", "error_event", 3},
		{"noterminal", account{Numbers: all}, "clean", "truncated", 6},
		{"empty", account{}, "clean", "truncated", 0},
		{"double@2", account{Numbers: []int{1, 2, 2, 3, 4, 5, 6}, Terminals: 1}, "clean", "complete", 7},
		{"drop@2", account{Numbers: []int{1, 3, 4, 5, 6}, Terminals: 1}, "clean", "complete", 5},
		{"drop@6", account{Numbers: all[:5], Terminals: 1}, "clean", "complete", 5},
		{"swap@2", account{Numbers: []int{1, 3, 2, 4, 5, 6}, Terminals: 1}, "clean", "complete", 6},
		{"swap@6", account{Numbers: []int{1, 2, 3, 4, 6, 5}, Terminals: 1}, "clean", "complete", 6},
		{"corrupt@1", account{Numbers: all[1:], Corrupt: 1, Terminals: 1}, "clean", "complete", 6},
		{"after", account{Numbers: all, Terminals: 1, ChunksAfterEnd: 1}, "clean", "complete", 6},
		{"twice", account{Numbers: all, Terminals: 2}, "clean", "complete", 6},
		{"length", account{Numbers: all, Terminals: 1}, "clean", "complete", 6},
		{"length@3", account{Numbers: three, Terminals: 1}, "clean", "complete", 3},
		{"burst", account{Numbers: all, Terminals: 1}, "clean", "complete", 6},
	} {
		for i := range apis {
			path := apis[i].path
			t.Run(test.fault+path, func(t *testing.T) {
				id := strings.ReplaceAll(t.Name(), "/", "-")
				r := post(t, url, path, "id="+id+" fault="+test.fault, true)
				require.Equal(t, http.StatusOK, r.StatusCode)
				require.Equal(t, test.ending, r.endText(t), r.body())
				require.Equal(t, test.want, count(r.body(), path, id), r.body())
				record := awaitRecord(t, url, id)
				require.Equal(t, test.outcome, record.Outcome)
				require.Equal(t, test.sent, record.Sent)
				require.Equal(t, apis[i].name, record.API)
				if test.fault == "none" {
					require.Empty(t, record.Fault)
				} else {
					require.True(t, strings.HasPrefix(record.Fault, test.fault[:3]), record.Fault)
				}
				if test.fault == "empty" {
					require.Empty(t, r.body())
				}
			})
		}
	}
}

func TestStatusFaults(t *testing.T) {
	_, url := start(t, noDelays())
	for _, stream := range []bool{true, false} {
		for _, path := range paths() {
			for fault, status := range map[string]int{"429": 429, "500": 500} {
				id := strings.ReplaceAll(path, "/", "-") + fault + strconv.FormatBool(stream)
				r := post(t, url, path, "id="+id+" fault="+fault, stream)
				require.Equal(t, status, r.StatusCode)
				require.Equal(t, map[string]string{"429": "2"}[fault], r.Header.Get("Retry-After"))
				r.endText(t)
				require.True(t, json.Valid([]byte(r.body())), r.body())
				require.Equal(t, Refused, awaitRecord(t, url, id).Outcome)
			}
		}
	}
}

func TestStalledStreamsStayOpenUntilTheClientDisconnects(t *testing.T) {
	_, url := start(t, noDelays())
	for _, path := range paths() {
		for fault, want := range map[string]struct {
			account
			outcome Outcome
		}{
			"stall@2": {account{Numbers: []int{1, 2}}, "left"},
			"linger":  {account{Numbers: []int{1, 2, 3, 4, 5, 6}, Terminals: 1}, "complete"},
		} {
			t.Run(fault+path, func(t *testing.T) {
				id := strings.ReplaceAll(t.Name(), "/", "-")
				r := post(t, url, path, "id="+id+" fault="+fault, true)
				got := func() account { return count(r.body(), path, id) }
				require.Eventually(t, func() bool { return len(got().Numbers) == len(want.Numbers) && got().Terminals == want.Terminals },
					testTimeout, time.Millisecond)
				open := records(t, url, id)
				require.Len(t, open, 1)
				require.Equal(t, Open, open[0].Outcome)
				before := time.Now()
				r.cancel()
				record := awaitRecord(t, url, id)
				require.Equal(t, want.outcome, record.Outcome)
				require.GreaterOrEqual(t, record.DisconnectedUS, before.UnixMicro())
				require.Equal(t, int32(len(want.Numbers)), record.SentBeforeDisconnect)
				require.Equal(t, want.account, got())
			})
		}
	}
}

func TestLedgerCountsTheChunksBeforeADisconnect(t *testing.T) {
	_, url := start(t, noDelays())
	r := post(t, url, chat.path, "id=early chunks=1000 delay=20ms", true)
	require.Eventually(t, func() bool { return len(count(r.body(), chat.path, "early").Numbers) >= 3 }, testTimeout, time.Millisecond)
	r.cancel()
	record := awaitRecord(t, url, "early")
	require.Equal(t, Disconnected, record.Outcome)
	require.GreaterOrEqual(t, record.SentBeforeDisconnect, int32(3))
	require.Less(t, record.SentBeforeDisconnect, int32(1000))
	require.Equal(t, int32(1000), record.Chunks)
	require.Less(t, record.First, record.Last)
}

func TestAnswersWithoutAStream(t *testing.T) {
	_, url := start(t, noDelays())
	for _, path := range paths() {
		for fault, want := range map[string][]int{"none": {1, 2, 3, 4, 5, 6}, "swap@2": {1, 3, 2, 4, 5, 6}, "drop@6": {1, 2, 3, 4, 5}} {
			r := post(t, url, path, "id=w fault="+fault, false)
			require.Equal(t, "clean", r.endText(t))
			require.Equal(t, "application/json", r.Header.Get("Content-Type"))
			require.True(t, json.Valid([]byte(r.body())), r.body())
			var got []int
			for token, rest, found := numbered.Next(r.body()); found; token, rest, found = numbered.Next(rest) {
				require.True(t, token.Valid("w"))
				got = append(got, token.K)
			}
			require.Equal(t, want, got)
		}
		r := post(t, url, path, "id=w fault=truncate", false)
		require.Equal(t, "clean", r.endText(t))
		require.False(t, json.Valid([]byte(r.body())))
		require.Equal(t, "reset", post(t, url, path, "id=w fault=reset", false).endText(t))
		id := "empty" + strings.ReplaceAll(path, "/", "-")
		r = post(t, url, path, "id="+id+" fault=empty", false)
		require.Equal(t, "clean", r.endText(t))
		require.Empty(t, r.body())
		record := awaitRecord(t, url, id)
		require.Equal(t, Truncated, record.Outcome)
		require.Zero(t, record.Sent)
	}
}

// The types and the order of the events match the real APIs. The events of OpenAI Responses are numbered from 0.
func TestEventsOfResponsesAndMessages(t *testing.T) {
	_, url := start(t, noDelays())
	for path, want := range map[string]string{
		"/v1/responses": "response.created response.in_progress response.output_item.added response.content_part.added " +
			"response.output_text.delta response.output_text.delta response.output_text.done response.content_part.done " +
			"response.output_item.done response.completed",
		"/v1/messages": "message_start content_block_start ping content_block_delta content_block_delta content_block_stop " +
			"message_delta message_stop",
	} {
		r := post(t, url, path, "id=e chunks=2", true)
		require.Equal(t, "clean", r.endText(t))
		var got []string
		for i, event := range events(r.body()) {
			name, data, _ := strings.Cut(event, "\ndata: ")
			var content struct {
				Type     string `json:"type"`
				Sequence *int   `json:"sequence_number"`
			}
			require.NoError(t, json.Unmarshal([]byte(data), &content), data)
			require.Equal(t, name, "event: "+content.Type)
			if path == "/v1/responses" {
				require.Equal(t, i, *content.Sequence)
			}
			got = append(got, content.Type)
		}
		require.Equal(t, want, strings.Join(got, " "))
	}
}

func TestChatReportsUsageOnRequest(t *testing.T) {
	_, url := start(t, noDelays())
	for options, want := range map[string]int{``: 0, `,"stream_options":{"include_usage":true}`: 1} {
		_, text := send(t, http.MethodPost, url+chat.path, `{"messages":[{"role":"user","content":"soak chunks=3"}],"stream":true`+options+`}`)
		require.Equal(t, want, strings.Count(text, `"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3,`))
		require.Equal(t, 5*want, strings.Count(text, `"usage":null`))
		require.Contains(t, text, "[3/3:")
	}
}

func TestBadRequestsAreRejected(t *testing.T) {
	_, url := start(t, noDelays())
	for text, want := range map[string]string{
		`{`:                           "must be JSON",
		`{"stream":true}`:             "must have",
		`{"input":"soak fault=fall"}`: "fault must be one of",
		`{"input":"soak chunks=0"}`:   "from 1 to",
		`{"input":"soak delay=-1s"}`:  "duration",
		`{"input":"soak id=<b>"}`:     "printable ASCII",
	} {
		for _, path := range paths() {
			status, body := send(t, http.MethodPost, url+path, text)
			var answer struct {
				Error struct{ Message string }
			}
			require.NoError(t, json.Unmarshal([]byte(body), &answer))
			require.Equal(t, http.StatusBadRequest, status)
			require.Contains(t, answer.Error.Message, want)
		}
	}
	require.Empty(t, records(t, url, ""))
}

func TestChunksAreSentOnSchedule(t *testing.T) {
	_, url := start(t, noDelays())
	r := post(t, url, chat.path, "id=timed chunks=4 ttft=60ms delay=20ms", true)
	require.Equal(t, "clean", r.endText(t))
	record := awaitRecord(t, url, "timed")
	require.GreaterOrEqual(t, record.First-record.Started, int64(60_000))
	require.GreaterOrEqual(t, record.Last-record.Started, int64(120_000))
}

func TestMetricsAndModels(t *testing.T) {
	_, url := start(t, noDelays())
	post(t, url, anthropic.path, "id=one", true).endText(t)
	awaitRecord(t, url, "one")
	for path, want := range map[string]string{
		"/metrics":   `model_requests_total{api="anthropic-messages",outcome="complete"} 1`,
		"/v1/models": `"id":"numbered"`,
		"/healthz":   "ok",
	} {
		_, text := send(t, http.MethodGet, url+path, "")
		require.Contains(t, text, want)
	}
}
