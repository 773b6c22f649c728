package service

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The blocks are from servers of each API.
func TestReadChunk(t *testing.T) {
	for _, c := range []struct {
		service, event, data string
		want                 Chunk
	}{
		{"openai-chat", "", `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`, Chunk{}},
		{"openai-chat", "", `{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}`, Chunk{Content: true, IsStated: true, Text: []byte("Hi")}},
		{"openai-chat", "", `{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hm"}}]}`, Chunk{Content: true, IsStated: true, Text: []byte("hm")}},
		{"openai-chat", "", `{"choices":[{"delta":{"refusal":"I cannot"}}]}`, Chunk{Content: true, IsStated: true, Text: []byte("I cannot")}},
		{"openai-chat", "", `{"choices":[{"delta":{"reasoning":"First"}}]}`, Chunk{Content: true, IsStated: true, Text: []byte("First")}},
		{"openai-chat", "", `{"choices":[{"delta":{"function_call":{"name":"now","arguments":""}}}]}`, Chunk{Content: true, IsStated: true}},
		{"openai-chat", "", `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}`, Chunk{Content: true, IsStated: true}},
		{"openai-chat", "", `{"choices":[{"index":0,"delta":{"tool_calls":[]}}]}`, Chunk{}},
		{"openai-chat", "", `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`, Chunk{Incomplete: true}},
		{"openai-chat", "", `{"choices":[{"index":0,"delta":{},"finish_reason":"abort"}]}`, Chunk{Incomplete: true}},
		{"openai-chat", "", `{"choices":[],"usage":{"completion_tokens":40}}`, Chunk{}},
		{"openai-chat", "", `{"error":{"message":"overloaded"}}`, Chunk{Failed: true}},
		{"openai-chat", "", `{"error":null,"choices":[{"delta":{"content":"a"}}]}`, Chunk{Content: true, IsStated: true, Text: []byte("a")}},
		{"openai-chat", "", `[DONE]`, Chunk{Done: true}},
		{"openai-chat", "", `{"choices":[{"delta":{"conte`, Chunk{Content: true, Err: ErrJSON}},
		{"openai-responses", "response.output_text.delta", `{"type":"response.output_text.delta","sequence_number":4,"delta":"Hi"}`, Chunk{Content: true, IsStated: true, Text: []byte("Hi"), Seq: 4, HasSeq: true}},
		{"openai-responses", "response.reasoning_summary_text.delta", `{"sequence_number":3,"delta":"hm"}`, Chunk{Content: true, Text: []byte("hm"), Seq: 3, HasSeq: true}},
		{"openai-responses", "response.output_text.done", `{"sequence_number":5,"text":"Hi"}`, Chunk{Seq: 5, HasSeq: true, StatedText: []byte("Hi"), HasStatedText: true}},
		{"openai-responses", "response.incomplete", `{"sequence_number":6,"response":{"status":"incomplete"}}`, Chunk{Done: true, Incomplete: true, Seq: 6, HasSeq: true}},
		{"openai-responses", "response.failed", `{"sequence_number":6}`, Chunk{Failed: true, Seq: 6, HasSeq: true}},
		{"openai-responses", "response.completed", `{"sequence_number":6,"response":{"status":"completed","error":null}}`, Chunk{Done: true, Seq: 6, HasSeq: true}},
		{"openai-responses", "response.completed", `{"sequence_number":6,"response":{"status":"incomplete"}}`, Chunk{Done: true, Incomplete: true, Seq: 6, HasSeq: true}},
		{"openai-responses", "response.completed", `{"sequence_number":6,"response":{"status":"failed"}}`, Chunk{Failed: true, Seq: 6, HasSeq: true}},
		{"openai-responses", "response.completed", `{"sequence_number":6,"response":{"status":"cancelled"}}`, Chunk{Failed: true, Seq: 6, HasSeq: true}},
		{"openai-responses", "response.completed", `{"sequence_number":6,"response":{"status":"fai`, Chunk{Done: true, Content: true, Err: ErrJSON}},
		{"openai-responses", "response.cancelled", `{"sequence_number":6}`, Chunk{Failed: true, Seq: 6, HasSeq: true}},
		{"openai-responses", "response.created", `{"sequence_number":-1}`, Chunk{Err: ErrNumber}},
		{"openai-responses", "", `{"sequence_number":3,"partial_image_b64":"AAAA"}`, Chunk{Content: true, Text: []byte("AAAA"), Seq: 3, HasSeq: true}},
		{"openai-responses", "", `[DONE]`, Chunk{Heartbeat: true}},
		{"anthropic-messages", "", `{"content_block":{"type":"text","text":""}}`, Chunk{}},
		{"anthropic-messages", "", `{"content_block":{"type":"tool_use","id":"a","name":"now","input":{}}}`, Chunk{Content: true, IsStated: true, Text: []byte("now")}},
		{"anthropic-messages", "", `{"delta":{"type":"input_json_delta","partial_json":""}}`, Chunk{}},
		{"anthropic-messages", "ping", `{"type":"ping"}`, Chunk{Heartbeat: true}},
		{"anthropic-messages", "content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`, Chunk{Content: true, IsStated: true, Text: []byte("Hi")}},
		{"anthropic-messages", "message_delta", `{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":4}}`, Chunk{Incomplete: true}},
		{"anthropic-messages", "error", `{"type":"error","error":{"type":"overloaded_error"}}`, Chunk{Failed: true}},
		{"anthropic-messages", "message_stop", `{"type":"message_stop"}`, Chunk{Done: true}},
		{"ag-ui", "", `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, Chunk{}},
		{"ag-ui", "", `{"type":"TOOL_CALL_START","toolCallId":"a","toolCallName":"now"}`, Chunk{Content: true, IsStated: true, Text: []byte("now")}},
		{"ag-ui", "", `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"assistant","content":"Hi"}]}`, Chunk{Content: true, IsStated: true}},
		{"ag-ui", "", `{"type":"RUN_FINISHED","result":{"answer":42}}`, Chunk{Done: true, Content: true, IsStated: true}},
		{"ag-ui", "", `{"type":"RUN_ERROR","message":"x"}`, Chunk{Failed: true}},
		{"ag-ui", "", `{"type":"RUN_FINISHED"}`, Chunk{Done: true}},
		{"a2a", "", `{"result":{"task":{"id":"t","status":{"state":"TASK_STATE_SUBMITTED"},"history":[{"parts":[{"text":"x"}]}]}},"id":"1","jsonrpc":"2.0"}`, Chunk{}},
		{"a2a", "", `{"result":{"artifactUpdate":{"artifact":{"artifactId":"a","parts":[{"text":"x"}]},"append":true}},"id":"1"}`, Chunk{Content: true, IsStated: true}},
		{"a2a", "", `{"result":{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_WORKING"}}},"id":"1"}`, Chunk{}},
		{"a2a", "", `{"result":{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_COMPLETED"}}},"id":"1"}`, Chunk{Done: true}},
		{"a2a", "", `{"result":{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED","message":{"parts":[{"text":"x"}]}}}},"id":"1"}`, Chunk{Done: true, Content: true, IsStated: true}},
		{"a2a", "", `{"result":{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_REJECTED"}}},"id":"1"}`, Chunk{Done: true, Incomplete: true}},
		{"a2a", "", `{"result":{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_FAILED"}}},"id":"1"}`, Chunk{Failed: true}},
		{"a2a", "", `{"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}},"id":"1"}`, Chunk{Done: true, Content: true, IsStated: true}},
		{"a2a", "error", `{"error":{"code":-32603,"message":"x"},"id":"1","jsonrpc":"2.0"}`, Chunk{Failed: true}},
		{"mcp", "message", `{"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":"x"}]}}`, Chunk{Done: true, Content: true, IsStated: true}},
		{"mcp", "message", `{"jsonrpc":"2.0","id":"1","result":{"content":[],"isError":true}}`, Chunk{Failed: true}},
		{"mcp", "", ``, Chunk{Heartbeat: true}},
		{"graphql-sse", "next", `{"data":{"greetings":"Hi"}}`, Chunk{Content: true, IsStated: true}},
		{"graphql-sse", "next", `{"errors":[{"message":"x"}],"data":null}`, Chunk{Failed: true}},
		{"graphql-sse", "complete", ``, Chunk{Done: true}},
	} {
		s := load(t, c.service)
		require.Equal(t, c.want, s.ReadChunk(newBlock(c.event, "", c.data)), "%s %s %s", c.service, c.event, c.data)
	}
}

func TestReadChunkOfCustomDescriptions(t *testing.T) {
	const (
		numbered = `"message":{"event":"piece","seq":"json:$.n"},"end":{"by":"event","done":{"event":"finished"}}`
		text     = `"message":{"content":"data","per":"request"},"end":{"by":"event","done":{"data":"[DONE]"},"failed":{"json":"$.error"}}`
		result   = `"message":{"content":"json:$.result"},"end":{"by":"event","done":{"json":"$.result"}}`
		stated   = `"message":{"per":"request","content":"json:$.choices[0].delta.content"},
			"end":{"by":"event","done":{"data":"[DONE]"},"stated":{"tokens":"json:$.usage.completion_tokens"}}`
	)
	for _, c := range []struct {
		description string
		block       *Block
		want        Chunk
	}{
		{numbered, newBlock("piece", "", `{"n":0}`), Chunk{Content: true, IsStated: true, HasSeq: true}},
		{numbered, newBlock("finished", "", `{}`), Chunk{Done: true}},
		{numbered, &Block{Comment: []byte("x"), HasComment: true}, Chunk{Heartbeat: true}},
		{numbered, &Block{Event: []byte("piece")}, Chunk{Heartbeat: true}}, // a block without data is not an event
		{numbered, &Block{Event: []byte("finished")}, Chunk{Heartbeat: true, Err: ErrNoData}},
		{numbered, newBlock("piece", "", "{\"n\":1,\"text\":\"\xc3\"}"), Chunk{Content: true, Err: ErrUTF8}},
		{text, newBlock("", "", "{\"error\":\"\xc3\"}"), Chunk{Failed: true}},
		{result, newBlock("", "", "{\"result\":\"\xc3\"}"), Chunk{Done: true, Content: true, Err: ErrUTF8}},
		{numbered, newBlock("status", "", `{"n":0}`), Chunk{}}, // only messages have numbers
		{numbered, newBlock("finished", "", `{"n":20}`), Chunk{Done: true}},
		{numbered, newBlock("status", "", `ready`), Chunk{}},
		{text, newBlock("", "", "Hi {"), Chunk{Content: true, IsStated: true, Text: []byte("Hi {")}},
		{text, newBlock("", "", `{"error":"overloaded"}`), Chunk{Failed: true}},
		{stated, newBlock("", "", `{"choices":[],"usage":{"completion_tokens":40}}`), Chunk{StatedTokens: 40, HasStatedTokens: true}},
		{stated, newBlock("", "", `{"choices":[],"usage":null}`), Chunk{}},
	} {
		require.Equal(t, c.want, serviceWith(t, c.description).ReadChunk(c.block), "%s: %s %s", c.description, c.block.Event, c.block.Data)
	}
	require.False(t, serviceWith(t, stated).Finite.StatesTextOrChunks(), "the description states tokens only")
}

func TestEmptyValuesAreNotContent(t *testing.T) {
	s := serviceWith(t, `"message":{"content":"json:$.c","per":"request"},"end":{"by":"event","done":{"data":"end"}}`)
	for data, want := range map[string]bool{
		`""`: false, `[]`: false, `{}`: false, "[ \t]": false, `false`: false, `null`: false,
		`[{}]`: true, `[[]]`: true, `[[],[]]`: true, `[false]`: true, `{"a":{}}`: true, `true`: true, `0`: true, `"[]"`: true, `"false"`: true,
	} {
		require.Equal(t, want, s.ReadChunk(newBlock("", "", `{"c":`+data+`}`)).Content, data)
	}
}

func TestReadChunkDoesNotAllocate(t *testing.T) {
	s := load(t, "openai-chat")
	b := newBlock("", "", `{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"[1/40:00000000] lorem "},"finish_reason":null}]}`)
	require.True(t, s.ReadChunk(b).Content)
	require.Zero(t, testing.AllocsPerRun(100, func() { s.ReadChunk(b) }))
}

func TestValueForTheNextRequest(t *testing.T) {
	describe := func(client string) *Service {
		return mustParse(t, `{"name":"x","connect":{"url":"{base}","headers":{"X-Session":"{client}"},"client":"`+client+`"},"message":"unchecked","end":{"by":"event","done":{"event":"end"}}}`)
	}
	s := describe("header:X-Session")
	require.Equal(t, "X-Session", s.ClientHeader())
	require.True(t, s.Connect.Headers[0].Omitted(&Values{}))
	client, ok := describe("json:$.id").Client(newBlock("", "", `{"id":"a"}`))
	require.Equal(t, "a true", fmt.Sprint(client, " ", ok))
}
