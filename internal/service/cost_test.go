package service

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// costCases returns functions that read a block of a service, or fill the templates of a request.
func costCases(t *testing.T) map[string]func() {
	const run = "run-1234567890"
	summed := `"sum":"` + checksum(run) + `"}`
	small := `{"run":"run-1234567890","seq":17,"t":1732250000000000,"text":"` + strings.Repeat("x", 19) + `",` + summed
	require.Len(t, small, 100)
	large := func(fill string) string {
		return `{"text":"` + strings.Repeat(fill, 64<<10/len(fill)) + `","run":"run-1234567890","seq":17,"t":1732250000000000,` + summed
	}
	out := map[string]func(){}
	reading := func(name, service string, b *Block, want Kind) {
		r := load(t, service).Reader(run)
		require.Equal(t, want, r.Read(b).Kind, name)
		out[name] = func() { r.Read(b) }
	}
	noop := newBlock("", "17", "0")
	noop.Comment, noop.HasComment = []byte("sent=1732250000000000"), true
	reading("noop", "noop", noop, Delivery)
	reading("json 100 B", "nchan", newBlock("", "1732250000:0", small), Delivery)
	reading("json 64 KB of text", "nchan", newBlock("", "1732250000:0", large("x")), Delivery)
	reading("json 64 KB of escapes", "nchan", newBlock("", "1732250000:0", large(`\n`)), Delivery)
	reading("json 64 KB of numbers", "nchan", newBlock("", "1732250000:0", `{"text":[`+strings.Repeat("123,", 16<<10)+`0],`+small[1:]), Delivery)
	other := strings.NewReplacer("run-1", "run-2", checksum(run), checksum("run-2234567890"))
	reading("json foreign", "nchan", newBlock("", "1732250000:0", other.Replace(small)), Foreign)
	reading("json foreign, escaped", "nchan", newBlock("", "1732250000:0", strings.Replace(other.Replace(small), "run-2", `run\u002d2`, 1)), Foreign)
	reading("json with another number", "nchan", newBlock("", "1732250000:0", strings.Replace(small, "17,", "18,", 1)), Delivery)
	reading("json with an exponent", "nchan", newBlock("", "1732250000:0", strings.Replace(small, "1732250000000000", "1.73225e+15", 1)), Delivery)
	reading("json truncated", "nchan", newBlock("", "1732250000:0", small[:60]), Delivery)
	reading("escaped key", "nchan", newBlock("", "1732250000:0", strings.Replace(small, `"seq"`, `"\u0073eq"`, 1)), Delivery)
	reading("heartbeat", "nchan", &Block{Event: []byte("ping")}, Heartbeat)
	reading("tags", "ntfy", newBlock("", "", `{"id":"SLiKI64DOt","time":1732250000,"event":"message","topic":"t","message":"soak","tags":["run-1234567890","17","1732250000000000","`+checksum(run)+`"]}`), Delivery)

	s := serviceWith(t, `"message":{"seq":"id:^[0-9]+:([0-9]+)$","run":"data:run=(\\S+)"}`)
	r := s.Reader("r1")
	b := newBlock("", "1732250000:17", "run=r1 and more")
	require.Equal(t, Reading{Kind: Delivery, Seq: 17, HasSeq: true}, r.Read(b))
	out["regexp of id and data"] = func() { r.Read(b) }
	long := newBlock("", "1732250000:17", strings.Repeat("some text ", 6<<10)+" run=r1")
	require.Equal(t, Delivery, r.Read(long).Kind)
	out["regexp 64 KB"] = func() { r.Read(long) }

	publish := load(t, "mercure").Publish
	buffer := make([]byte, 0, 1024)
	out["a request of the publisher"] = func() {
		buffer = publish.URL.Append(buffer[:0], &values)
		buffer = publish.Body.Append(buffer, &values)
		for i := range publish.Headers {
			buffer = publish.Headers[i].Value.Append(buffer, &values)
		}
	}
	return out
}

// The number of allocations per message does not depend on its size. It is one for the JSON, plus one for each regular
// expression. Each name or value with escapes, and each number with an exponent, needs several.
func TestAllocationsPerMessage(t *testing.T) {
	for name, run := range costCases(t) {
		limit := 16.0
		if name == "a request of the publisher" {
			limit = 18 // 17 with -race, when regexp cannot reuse memory
		}
		if strings.Contains(name, "escape") || strings.Contains(name, "exponent") {
			limit = 40
		}
		require.LessOrEqual(t, testing.AllocsPerRun(50, run), limit, name)
	}
}
