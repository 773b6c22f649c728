package service

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/module"
)

const modules = "../../load-tests/services"

func exportedDescription(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return module.Evaluate(t, string(text))
}

func load(t testing.TB, name string) *Service {
	t.Helper()
	s := mustParse(t, exportedDescription(t, filepath.Join(modules, name+".js")))
	require.Equal(t, name, s.Name)
	return s
}

var includedModules = []string{
	"noop", "nchan", "mercure", "django-eventstream", "pocketbase", "centrifugo", "ntfy", "sse",
	"openai-chat", "openai-responses", "anthropic-messages", "ag-ui", "a2a", "mcp", "graphql-sse",
}

// The test includes modules that a user has added (docs/services.md).
func TestEachModuleCompiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(modules, "*.js"))
	require.NoError(t, err)
	names := map[string]bool{}
	hashes := map[string]string{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".js")
		names[name] = true
		t.Run(name, func(t *testing.T) {
			s := load(t, name)
			require.Len(t, s.Hash(), 64)
			require.Empty(t, hashes[s.Hash()], "two services must not have the same hash")
			hashes[s.Hash()] = name
		})
	}
	for _, name := range includedModules {
		require.True(t, names[name], "the module %s is missing", name)
	}
}

// Go code and scripts use the same description.
func TestNoopEqualsItsModule(t *testing.T) {
	require.Equal(t, load(t, "noop").Hash(), Noop(15*time.Second).Hash())
	s := Noop(500 * time.Millisecond)
	require.Equal(t, 500*time.Millisecond, s.Message.Interval)
	require.Equal(t, "GET /event/connect", s.Connect.Route())
	require.Equal(t, "DELETE /event/forcedisconnect", s.End.Request.Route())
	root := mustParse(t, `{"name": "root", "connect": {"url": "{base}"}, "message": {"every": 15}}`)
	require.Equal(t, "GET /", root.Connect.Route())
}

// tools/bench publishes messages of 100 bytes.
func TestBenchServiceCompiles(t *testing.T) {
	s := mustParse(t, exportedDescription(t, "../../tools/bench/service.js"))
	require.Len(t, s.Publish.Body.Append(nil, &Values{Run: "bench-12345678", Seq: 17, SentAt: 1732250000000000}), 100)
}

var values = Values{
	Base: "http://localhost:8080", Topic: "t 1/é", ID: "a-7", Run: `r"1`, Token: "secret", Client: "c\n1", N: 6, Seq: 17, SentAt: 1732250000000000,
}

func requestText(r *Request, v Values) string {
	out := r.Method + " " + string(r.URL.Append(nil, &v)) + "\n"
	for name, value := range r.FilledHeaders(&v) {
		out += name + ": " + value + "\n"
	}
	return out + string(r.Body.Append(nil, &v))
}

func TestRequestsOfModules(t *testing.T) {
	s := load(t, "noop")
	require.Equal(t, "GET http://localhost:8080/event/connect?id=a-7\nAuthorization: Bearer secret\n", requestText(&s.Connect, values))
	require.Equal(t, ByRequest, s.End.By)
	anonymous := values
	anonymous.Token = ""
	require.Equal(t, "DELETE http://localhost:8080/event/forcedisconnect?id=a-7\n", requestText(s.End.Request, anonymous))
	require.True(t, s.End.Request.Accepts(200))
	require.False(t, s.End.Request.Accepts(404))
	require.Equal(t, 15*time.Second, s.Message.Interval)
	require.False(t, s.Message.PerTopic)

	s = load(t, "nchan")
	require.Equal(t, "GET http://localhost:8080/sub/t%201%2F%C3%A9\nAccept: text/event-stream\n", requestText(&s.Connect, values))
	require.Equal(t, "POST http://localhost:8080/pub/t%201%2F%C3%A9\nContent-Type: application/json\n"+
		`{"run":"r\"1","seq":17,"t":1732250000000000,"sum":"`+checksum(`r"1`)+`","pad":""}`, requestText(s.Publish, values))
	padded := values
	padded.Padding = "xxx"
	require.Contains(t, requestText(s.Publish, padded), `,"pad":"xxx"}`)
	require.True(t, s.Message.PerTopic)
	require.Equal(t, 30*time.Second, s.HeartbeatEvery)

	s = load(t, "mercure")
	require.Equal(t, "POST http://localhost:8080/.well-known/mercure\nAuthorization: Bearer secret\nContent-Type: application/x-www-form-urlencoded\n"+
		`topic=t%201%2F%C3%A9&data=%7B%22run%22:%22r%5C%221%22,%22seq%22:17,%22t%22:1732250000000000,%22sum%22:%22`+checksum(`r"1`)+`%22,%22pad%22:%22%22%7D`, requestText(s.Publish, values))
	require.Equal(t, "Last-Event-ID", s.Resume.GapHeader)
	require.Equal(t, AnotherID, s.Resume.GapValue)
	require.Equal(t, "the header Last-Event-ID with an id other than the requested one", s.Gap())
	require.Equal(t, 475*time.Second, s.End.Shortest)
	require.Equal(t, 600*time.Second, s.End.Longest)

	s = load(t, "pocketbase")
	topic := values
	topic.Topic = "t1"
	require.Equal(t, "POST http://localhost:8080/api/realtime\nAuthorization: secret\nContent-Type: application/json\n"+
		`{"clientId":"c\n1","subscriptions":["soak/*?options=%7B%22query%22%3A%7B%22filter%22%3A%22topic%3D't1'%22%7D%7D"]}`, requestText(&s.SecondRequest.Request, topic))

	s = load(t, "centrifugo")
	require.Equal(t, "GET http://localhost:8080/connection/uni_sse?cf_connect=%7B%22token%22:%22secret%22,%22subs%22:%7B%22t1%22:%7B%7D%7D%7D\n", requestText(&s.Connect, topic))

	s = load(t, "ntfy")
	require.Contains(t, requestText(s.Publish, topic), "\nX-Tags: r\"1,17,1732250000000000,"+checksum(`r"1`)+"\n")
	require.Equal(t, "since", s.Resume.Query)
	require.True(t, s.Resume.SendsReadingID)
	require.True(t, s.Message.AnyOrder)
}

// checksum returns the checksum of message 17 of a run, computed independently.
func checksum(run string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(run+"\x0017\x001732250000000000"), crc32.MakeTable(crc32.Castagnoli)))
}

// newBlock returns a block with data. An empty event or id means that the block has no such line.
func newBlock(event, id, data string) *Block {
	return &Block{Event: []byte(event), ID: []byte(id), HasID: id != "", Data: []byte(data), HasData: true}
}

// The blocks are from the source of each service, which its module names.
func TestBlocksOfServices(t *testing.T) {
	const at = 1732250000000000
	noop := newBlock("", "17", "0")
	noop.Comment, noop.HasComment = []byte("sent=1732250000000000"), true
	comment := &Block{HasComment: true}
	ntfyMessage := func(id string) *Block {
		return newBlock("", "", `{"id":"`+id+`","time":1732250000,"event":"message","topic":"t","message":"soak","tags":["r1","17","1732250000000000","`+checksum("r1")+`"]}`)
	}
	for _, c := range []struct {
		name, service string
		block         *Block
		want          Reading
	}{
		{"with id and time", "noop", noop, Reading{Kind: Delivery, Seq: 17, HasSeq: true, SentAt: at, HasSentAt: true}},
		{"bare", "noop", newBlock("", "", "0"), Reading{Kind: Delivery, Err: ErrMissing}},
		{"changed", "noop", newBlock("", "17", "1"), Reading{Kind: Delivery, Seq: 17, HasSeq: true, Err: ErrData}},
		{"text as id", "noop", newBlock("", "x", "0"), Reading{Kind: Delivery, OtherID: true}},
		{"zero", "noop", newBlock("", "0", "0"), Reading{Kind: Delivery, OtherID: true}},
		{"empty id", "noop", &Block{Data: []byte("0"), HasData: true, HasID: true}, Reading{Kind: Delivery}},
		{"named", "noop", newBlock("news", "18", "x"), Reading{Seq: 18, HasSeq: true}},
		{"ping", "nchan", &Block{Event: []byte("ping")}, Reading{Kind: Heartbeat}},
		{"message", "nchan", newBlock("", "1732250000:3", `{"run":"r1","seq":17,"t":1732250000000000,"sum":"`+checksum("r1")+`"}`), Reading{Kind: Delivery, Seq: 17, HasSeq: true, SentAt: at, HasSentAt: true}},
		{"another run", "nchan", newBlock("", "1:3", `{"run":"r2","seq":17,"t":1732250000000000,"sum":"`+checksum("r2")+`"}`), Reading{Kind: Foreign}},
		{"another publisher", "nchan", newBlock("", "1:3", `hello`), Reading{}},
		{"truncated", "nchan", newBlock("", "1:3", `{"run":"r1","seq":17,"t":17322500000`), Reading{Kind: Delivery, Err: ErrJSON}},
		{"half a character", "nchan", newBlock("", "1:3", `{"run":"r1","seq":17,"t":1732250000000000,"sum":"`+checksum("r1")+`","text":"`+"\xC3"+`"}`), Reading{Kind: Delivery, Seq: 17, HasSeq: true, SentAt: at, HasSentAt: true, Err: ErrUTF8}},
		{"no number", "nchan", newBlock("", "1:3", `{"run":"r1","seq":"x","t":1732250000000000,"sum":"`+checksum("r1")+`"}`), Reading{Kind: Delivery, Err: ErrNumber, SentAt: at, HasSentAt: true}},
		{"heartbeat", "mercure", comment, Reading{Kind: Heartbeat}},
		{"keep-alive", "django-eventstream", newBlock("keep-alive", "", ""), Reading{Kind: Heartbeat}},
		{"stream-open", "django-eventstream", newBlock("stream-open", "", ""), Reading{}},
		{"stream-reset", "django-eventstream", newBlock("stream-reset", "t:9", `{"channels":["t"]}`), Reading{Kind: Gap}},
		{"message", "django-eventstream", newBlock("message", "t:9", `{"run": "r1", "seq": 17, "t": 1732250000000000, "sum": "`+checksum("r1")+`"}`), Reading{Kind: Delivery, Seq: 17, HasSeq: true, SentAt: at, HasSentAt: true}},
		{"connect", "pocketbase", newBlock("PB_CONNECT", "c1", `{"clientId":"c1"}`), Reading{}},
		{"record", "pocketbase", newBlock("soak/*?options=x", "c1", `{"record":{"collectionName":"soak","id":"x","run":"r1","seq":17,"sum":"`+checksum("r1")+`","t":1732250000000000,"topic":"t"},"action":"create"}`), Reading{Kind: Delivery, Seq: 17, HasSeq: true, SentAt: at, HasSentAt: true}},
		{"ping", "centrifugo", newBlock("", "", "{}"), Reading{Kind: Heartbeat}},
		{"connected", "centrifugo", newBlock("", "", `{"connect":{"client":"x","version":"6.9.1","subs":{"t":{}},"ping":25}}`), Reading{}},
		{"publication", "centrifugo", newBlock("", "", `{"channel":"t","pub":{"data":{"run":"r1","seq":17,"t":1732250000000000,"sum":"`+checksum("r1")+`"},"offset":3}}`), Reading{Kind: Delivery, Seq: 17, HasSeq: true, SentAt: at, HasSentAt: true}},
		{"open", "ntfy", newBlock("open", "", `{"id":"a","time":1732250000,"event":"open","topic":"t"}`), Reading{}},
		{"keepalive", "ntfy", newBlock("keepalive", "", `{"id":"a","time":1732250000,"event":"keepalive","topic":"t"}`), Reading{Kind: Heartbeat}},
		{"message", "ntfy", ntfyMessage("SLiKI64DOt"), Reading{Kind: Delivery, Seq: 17, HasSeq: true, SentAt: at, HasSentAt: true, ID: []byte("SLiKI64DOt")}},
		{"id with escapes", "ntfy", ntfyMessage(`a\/b\u0026`), Reading{Kind: Delivery, Seq: 17, HasSeq: true, SentAt: at, HasSentAt: true, ID: []byte("a/b&")}},
		{"id with a line break", "ntfy", ntfyMessage(`a\nb`), Reading{Kind: Delivery, Seq: 17, HasSeq: true, SentAt: at, HasSentAt: true}},
		{"any", "sse", newBlock("x", "y", "z"), Reading{Kind: Delivery}},
		{"comment", "sse", comment, Reading{Kind: Heartbeat}},
		{"an event with a comment", "sse", noop, Reading{Kind: Delivery}},
	} {
		t.Run(c.service+"/"+c.name, func(t *testing.T) {
			require.Equal(t, c.want, load(t, c.service).Reader("r1").Read(c.block))
		})
	}
}

func TestClientOfTheSecondRequest(t *testing.T) {
	s := load(t, "pocketbase")
	client, ok := s.Client(newBlock("PB_CONNECT", "c1", `{"clientId":"a\"b\u00e9\ud83d\ude00"}`))
	require.True(t, ok)
	require.Equal(t, "a\"bé😀", client)
	for _, b := range []*Block{newBlock("x", "", `{"clientId":"a"}`), newBlock("PB_CONNECT", "", `{"clientId":"a"`), newBlock("PB_CONNECT", "", `{}`), newBlock("PB_CONNECT", "", `{"clientId":{}}`)} {
		_, ok = s.Client(b)
		require.False(t, ok)
	}
	_, ok = load(t, "sse").Client(newBlock("PB_CONNECT", "", "x"))
	require.False(t, ok)
}
